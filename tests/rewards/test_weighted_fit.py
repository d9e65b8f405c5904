"""Maximum likelihood in whitened coordinates against scikit-learn, and separable labels against HiGHS."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.special
from hypothesis import given
from hypothesis import strategies as st

from robust_rlhf_jax.kernels.logistic import label_variance
from robust_rlhf_jax.rewards import newton, weighted_fit
from robust_rlhf_jax.rewards.coordinates import unit_free
from robust_rlhf_jax.rewards.plain_fit import plain_fit as maximum_likelihood_alone

from .worlds import (
    draw_labels,
    maximum_likelihood,
    normal_pairs,
    plain_fit,
    rare_pairs,
    rows_of,
    sparse_pairs,
)

n, k = 200, 6


@jax.jit
def plain(x, labels):
    pairs = unit_free(x, labels)
    found = plain_fit(pairs)
    return pairs, found, pairs.to_theta @ found.t


@jax.jit
def says_separable(x, labels):
    pairs = unit_free(x, labels)
    return weighted_fit.separable(pairs, plain_fit(pairs))


@jax.jit
def weighted(x, labels, weights, start):
    pairs = unit_free(x, labels)
    return pairs, weighted_fit.fit(pairs, weights, start)


@pytest.mark.parametrize("draw", [normal_pairs, rare_pairs, sparse_pairs])
@pytest.mark.parametrize(("wide", "tolerance"), [(False, 2e-3), (True, 1e-6)])
def test_plain_is_scikit_learn(draw, wide, tolerance):
    with jax.enable_x64(wide):
        for seed in range(4):
            x, labels = draw(seed, n=n)
            _, found, theta = plain(jnp.asarray(x), jnp.asarray(labels))
            np.testing.assert_allclose(
                theta, maximum_likelihood(x, labels), rtol=tolerance, atol=tolerance / 10
            )
            assert not found.at_radius


def test_weights_and_prior_rows(x64):
    """Against L-BFGS on rows that are written out: the pairs, and .02 wins and losses along each whitened axis."""
    for seed in range(3):
        x, labels = normal_pairs(seed, n=n)
        rng = np.random.default_rng(seed)
        weights = rng.uniform(size=n) * (rng.uniform(size=n) < 0.5)
        pairs, found = weighted(*map(jnp.asarray, (x, labels, weights, rng.normal(size=k))))
        rows = np.concatenate([np.asarray(pairs.z), np.eye(k), -np.eye(k)])
        signs = np.concatenate([labels, np.ones(2 * k)])
        mass = np.concatenate([weights, np.full(2 * k, 0.02)])

        def loss(t, rows=rows, signs=signs, mass=mass):
            margins = signs * (rows @ t)
            slope = -(mass * signs * scipy.special.expit(-margins)) @ rows
            return -mass @ scipy.special.log_expit(margins), slope

        options = {"ftol": 1e-16, "gtol": 1e-10, "maxiter": 2000}
        expected = scipy.optimize.minimize(loss, np.zeros(k), jac=True, method="L-BFGS-B", options=options)
        np.testing.assert_allclose(found.t, expected.x, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(found.value, -expected.fun / mass.sum(), rtol=1e-9)


def test_without_pairs_the_prior_says_nothing():
    x, labels = normal_pairs(n=n)
    _, found = weighted(*(jnp.asarray(a, jnp.float32) for a in (x, labels, np.zeros(n), np.ones(k))))
    np.testing.assert_allclose(found.t, 0.0, atol=1e-3)


def test_information_and_scores_row_by_row(x64):
    x, labels = normal_pairs(n=n)
    rng = np.random.default_rng(0)
    weights, t = rng.uniform(size=n), rng.normal(size=k)
    pairs, *_ = plain(jnp.asarray(x), jnp.asarray(labels))
    margins = pairs.margins(jnp.asarray(t))
    expected = np.zeros((k, k))
    for row, label, weight, miss in zip(
        np.asarray(pairs.z), labels, weights, np.asarray(weighted_fit.missed(margins)), strict=True
    ):
        chance = 1 / (1 + np.exp(-label * (row @ t)))
        np.testing.assert_allclose(miss, 1 - chance, atol=1e-12)
        expected += weight * chance * (1 - chance) * np.outer(row, row)
    found = weighted_fit.information(pairs, jnp.asarray(weights), margins)
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def separates(x, labels):
    """Whether some θ has o_nθᵀx_n ≥ 0 for all n, and > 0 for one: then no θ maximises the likelihood (HiGHS)."""
    rows = labels[:, None] * x
    found = scipy.optimize.linprog(
        -rows.sum(axis=0), A_ub=-rows, b_ub=np.zeros(len(rows)), bounds=[(-1, 1)] * x.shape[1], method="highs"
    )
    return -found.fun > 1e-7


@given(st.integers(0, 2**16), st.sampled_from([0.3, 1.0, 4.0]), st.booleans())
def test_labels_that_nothing_separates_have_a_finite_fit(seed, length, whole):
    """The bound ‖t‖ ≤ 30 is met only by labels that HiGHS separates, or nearly: with root mean square margin 30."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-2, 3, size=(16, 3)).astype(float) if whole else rng.normal(size=(16, 3))
    labels = draw_labels(rng, x, length * rng.normal(size=3))
    if not x.any() or separates(x, labels):
        return
    with jax.enable_x64(True):
        _, found, theta = plain(jnp.asarray(x), jnp.asarray(labels))
        if found.at_radius:
            assert np.sqrt(np.mean((x @ maximum_likelihood(x, labels)) ** 2)) > 29
        else:
            np.testing.assert_allclose(x @ theta, x @ maximum_likelihood(x, labels), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("wide", [False, True])
def test_separable_labels_stop_at_the_bound(wide):
    with jax.enable_x64(wide):
        for seed in range(4):
            x, _ = normal_pairs(seed, n=n)
            truth = np.random.default_rng(seed).normal(size=k)
            labels = np.sign(x @ truth)
            assert separates(x, labels)
            _, found, theta = plain(jnp.asarray(x), jnp.asarray(labels))
            assert found.at_radius
            assert np.linalg.norm(found.t) <= weighted_fit.RADIUS * (1 + 1e-5)
            assert theta @ truth > 0.95 * np.linalg.norm(theta) * np.linalg.norm(truth)


@pytest.mark.parametrize("wide", [False, True])
@given(
    seed=st.integers(0, 2**16),
    length=st.sampled_from([0.3, 1.0, 4.0]),
    kind=st.sampled_from(["whole", "normal", "rare"]),
)
def test_whatever_highs_separates_is_found(wide, seed, length, kind):
    """And nothing else, but labels whose finite fit has margins beyond all use. In `rare` three pairs show a column."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(16, 3)) if kind == "normal" else rng.integers(-2, 3, size=(16, 3)).astype(float)
    labels = draw_labels(rng, x, length * rng.normal(size=3))
    if kind == "rare":
        x[:, 0] = np.arange(16) < 3
        labels[:3] = rng.choice([-1.0, 1.0], 3) if seed % 2 else 1.0
    if not x.any():
        return
    with jax.enable_x64(wide):
        found = says_separable(*(jnp.asarray(a, jnp.float64 if wide else jnp.float32) for a in (x, labels)))
    if separates(x, labels):
        assert found
    elif found:
        assert np.abs(x @ maximum_likelihood(x, labels)).max() > 10


def test_maximum_likelihood_alone_is_the_same_fit(x64):
    x, labels = normal_pairs(n=n)
    np.testing.assert_allclose(
        maximum_likelihood_alone(jnp.asarray(x), jnp.asarray(labels)),
        maximum_likelihood(x, labels),
        rtol=1e-6,
    )


def test_a_column_of_zeros_separates_nothing():
    x, labels = normal_pairs(n=n)
    x[:, 2] = 0.0
    assert not says_separable(jnp.asarray(x, jnp.float32), jnp.asarray(labels, jnp.float32))


def test_rows_of_zeros_separate_nothing():
    assert not says_separable(jnp.zeros((n, k)), jnp.ones(n))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "flat"),
    [
        (100, weighted_fit.FLAT),
        (1000, 4000 * float(np.finfo(np.float32).eps)),
        (40_000, weighted_fit.FLAT_AT_MOST),
    ],
)
def test_labels_separate_where_their_variance_is_flat(count, flat):
    """One axis, the same margin for all pairs: what counts as flat grows with the pairs, between its two bounds."""
    pairs = rows_of(np.ones((count, 1)))
    for variance, expected in ((0.85 * flat, True), (1.15 * flat, False)):
        margin = scipy.special.logit(0.5 + np.sqrt(0.25 - variance))
        plain = weighted_fit.WeightedFit(jnp.full(1, margin), None, None, None, jnp.asarray(False))
        assert weighted_fit.separable(pairs, plain) == expected


@pytest.mark.parametrize(("share", "there"), [(0.99, False), (1.0, True)])
def test_the_radius_counts_as_reached_within_a_thousandth(share, there, monkeypatch):
    """With a stand-in for the fit."""
    x, labels = normal_pairs(n=n)
    pairs = rows_of(x, labels)
    end = jnp.zeros(k).at[2].set(-share * weighted_fit.RADIUS)
    monkeypatch.setattr(weighted_fit, "maximise", lambda *_: newton.Optimum(end, None, None, None))
    assert weighted_fit.fit(pairs, jnp.ones(n), end).at_radius == there


def test_the_first_factor_is_of_the_largest_curvature_a_label_can_have():
    factor = weighted_fit.first_factor(jnp.zeros(3))
    np.testing.assert_array_equal(factor @ factor.T, label_variance(jnp.zeros(())) * np.eye(3))


def test_secant_information_is_the_bound_of_jaakkola_and_jordan(x64):
    """Σ w tanh(m/2)/(2m) zzᵀ, ¼ at m = 0; at least Fisher's information, and it forgets no sure label."""
    x, labels = normal_pairs(0, n=n)
    pairs = unit_free(jnp.asarray(x), jnp.asarray(labels))
    rng = np.random.default_rng(0)
    weights, margins = rng.uniform(size=n), rng.normal(0.0, 4.0, n)
    z = np.asarray(pairs.z)
    found = weighted_fit.secant_information(pairs, jnp.asarray(weights), jnp.asarray(margins))
    np.testing.assert_allclose(found, (z.T * (weights * np.tanh(margins / 2) / (2 * margins))) @ z, rtol=1e-5)
    fisher = weighted_fit.information(pairs, jnp.asarray(weights), jnp.asarray(margins))
    assert np.linalg.eigvalsh(np.asarray(found - fisher)).min() > 0
    at_zero = weighted_fit.secant_information(pairs, jnp.asarray(weights), jnp.zeros(n))
    np.testing.assert_allclose(at_zero, (z.T * (weights / 4)) @ z, rtol=1e-5)
