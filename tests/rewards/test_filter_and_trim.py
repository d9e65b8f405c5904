"""The stages of the robust reward estimate: whiten, filter, trim."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.special

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.moments import robust_covariance
from robust_rlhf_jax.rewards import filter_and_trim
from robust_rlhf_jax.rewards.filter_and_trim import robust_reward

RADIUS = 4.0


@jax.jit
def estimate(rows, x, labels, epsilon):
    return robust_reward(rows, x, labels, epsilon, radius=RADIUS)


def sample(seed=0, n=600, share=0.0, leak=0.0):
    """Rows in a subspace of three of four dimensions; a `share` of them planted against θ★.

    **Returns:** (rows for Σ̂ [n, 4], x [n, 4], labels, θ★ in the subspace, which rows of x are clean).
    """
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(np.vstack([np.ones(4), rng.normal(size=(3, 4))]).T)[0][:, 1:]
    rows, x = rng.uniform(-1, 1, size=(2, n, 3)) @ basis.T
    theta = basis @ np.array([1.5, -1.0, 0.5])
    labels = np.where(rng.uniform(size=n) < scipy.special.expit(x @ theta), 1.0, -1.0)
    clean = np.ones(n, bool)
    planted = -3.0 * theta / np.linalg.norm(theta) + leak * np.ones(4)
    for part in (rows, x):
        bad = rng.choice(n, int(share * n), replace=False)
        part[bad] = planted
    clean[bad], labels[bad] = False, 1.0
    return rows, x, labels, theta, clean


def cosine(a, b):
    return np.dot(a, b) / np.linalg.norm(a) / np.linalg.norm(b)


def run(rows, x, labels, epsilon):
    return estimate(*(jnp.asarray(part, jnp.float32) for part in (rows, x, labels, epsilon)))


def maximum_likelihood(x, labels):
    """Minimal-norm fit to all pairs, by BFGS in coordinates of the span."""
    basis = np.linalg.svd(x, full_matrices=False)[2][:3]
    z = x @ basis.T
    solution = scipy.optimize.minimize(
        lambda t: -scipy.special.log_expit(labels * (z @ t)).mean(),
        np.zeros(3),
        jac=lambda t: -(labels * scipy.special.expit(-labels * (z @ t))) @ z / len(z),
        options={"gtol": 1e-9},
    )
    return basis.T @ solution.x


@pytest.mark.slow
def test_stages_without_corruption():
    rows, x, labels, _, _ = sample()
    found = run(rows, x, labels, 0.0)
    sigma = rows.T @ rows / len(rows)
    np.testing.assert_allclose(found.covariance, sigma, atol=1e-6)
    np.testing.assert_allclose(found.fit.theta, maximum_likelihood(x, labels), atol=1e-3)
    np.testing.assert_array_equal(found.survivors, 1.0)
    lengths = np.sum(x * (x @ np.linalg.pinv(sigma, 1e-6)), axis=1)
    np.testing.assert_allclose(found.suspicion, lengths / 3, rtol=1e-4)
    assert found.rank == 3
    assert found.status == Status.CONVERGED


@pytest.mark.slow
def test_stages_with_planted_pairs():
    """The filter takes what was planted, and θ̂ points where θ★ does; a fit that trusts all pairs does not."""
    for seed in range(3):
        rows, x, labels, theta, clean = sample(seed, share=0.1)
        found = run(rows, x, labels, 0.1)
        alone = robust_covariance(jnp.asarray(rows, jnp.float32), 0.1, assume_centered=True)
        np.testing.assert_allclose(found.covariance, alone.covariance, atol=1e-5)
        survivors = np.asarray(found.survivors)
        assert survivors[~clean].mean() < 0.05
        assert survivors[clean].mean() > 0.8
        assert found.rank == 3
        assert cosine(found.fit.theta, theta) > 0.95
        assert cosine(maximum_likelihood(x, labels), theta) < 0.5
        suspicion = np.asarray(found.suspicion)
        assert suspicion[~clean].min() > suspicion[clean].max()
        assert (np.asarray(found.fit.weights) <= np.maximum(survivors, 1e-3) + 1e-6).all()


@pytest.mark.slow
def test_rows_off_the_subspace_are_dropped():
    """Clean differences cannot leave the subspace: one that does, however short, is corrupt."""
    rows, x, labels, _, _ = sample(2)
    x[:6] += 0.05
    found = run(rows, x, labels, 0.05)
    assert found.rank == 3
    np.testing.assert_array_equal(found.survivors[:6], 0.0)
    assert np.mean(found.survivors[6:]) > 0.85
    trusting = run(rows, x, labels, 0.0)
    np.testing.assert_array_equal(trusting.survivors, 1.0)


@pytest.mark.slow
def test_a_row_is_off_the_subspace_from_the_share_of_its_length_that_is_suspect():
    """The normal of the subspace is (1, 1, 1, 1)/2; half of that share is rounding of honest rows, twice is not."""
    rows, x, labels, _, _ = sample(2)
    middling = np.argsort(np.abs(np.linalg.norm(x, axis=1) - 1.0))[:6]
    length = np.linalg.norm(x[middling], axis=1, keepdims=True)
    for share, stays in (
        (0.5 * filter_and_trim.OFF_SUBSPACE, True),
        (2.0 * filter_and_trim.OFF_SUBSPACE, False),
    ):
        off = x.copy()
        off[middling] += share * length * np.full(4, 0.5)
        assert (np.asarray(run(rows, off, labels, 0.05).survivors)[middling] > 0.5).all() == stays


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_suspicion_on_a_line_is_the_squared_length_and_of_nothing_nothing(rank):
    rows, x, labels, _, _ = sample()
    rows, x = (rank * part[:, :1] * np.array([1.0, -1.0, 2.0, 0.0]) for part in (rows, x))
    found = run(rows, x, labels, 0.0)
    assert found.rank == rank
    mean = np.mean(rows[:, 0] ** 2) if rank else 1.0
    np.testing.assert_allclose(found.suspicion, x[:, 0] ** 2 / mean, rtol=1e-4)


@pytest.mark.slow
def test_by_default_the_filter_loses_no_honest_row_beyond_its_budget():
    rows, x, labels, *_ = (jnp.asarray(part, jnp.float32) for part in sample(share=0.3))
    told = jax.jit(lambda doubt: robust_reward(rows, x, labels, 0.1, radius=RADIUS, doubt=doubt).survivors)
    np.testing.assert_allclose(estimate(rows, x, labels, 0.1).survivors, told(0.0), atol=1e-5)
    assert np.abs(told(0.2) - told(0.0)).max() > 0.5


def test_options_are_given_by_name():
    with pytest.raises(TypeError):
        robust_reward(*(jnp.asarray(part, jnp.float32) for part in sample()[:3]), 0.1, RADIUS)


@pytest.mark.slow
def test_nan_is_reported():
    rows, x, labels, _, _ = sample()
    for corrupted in (0, 1, 2):
        parts = [part.copy() for part in (rows, x, labels)]
        parts[corrupted][0] = np.nan
        assert run(*parts, 0.1).status == Status.NONFINITE


@pytest.mark.slow
def test_slack_keeps_clean_rows():
    """Σ̂ is a few per cent too small on clean rows: a filter that asked for unit covariance would take 7 to 24 %."""
    for seed, epsilon in ((0, 0.05), (1, 0.1), (2, 0.2)):
        rng = np.random.default_rng(seed)
        rows, x = rng.normal(size=(2, 1000, 4))
        labels = np.where(rng.uniform(size=1000) < 0.5, 1.0, -1.0)
        assert np.mean(run(rows, x, labels, epsilon).survivors) > 0.99


@pytest.mark.slow
def test_doubt_is_budget_beyond_twice_epsilon():
    """Three tenths lie far out at ε = .1: the budget 2ε leaves some of them, a fifth more removes them all."""
    rows, x = np.random.default_rng(3).normal(size=(2, 1000, 3)).astype(np.float32)
    x[:300, 0] += 8.0
    labels = np.ones(1000, np.float32)
    doubting = jax.jit(
        lambda epsilon, d: robust_reward(rows, x, labels, epsilon, radius=1.0, doubt=d).survivors
    )
    few, all_gone = (np.asarray(doubting(0.1, d)) for d in (0.0, 0.2))
    assert 1 - few.mean() <= 0.2 + 1e-6
    assert all_gone[:300].mean() < 0.01
    assert all_gone[300:].mean() > 0.9
    np.testing.assert_array_equal(doubting(0.0, 0.2), 1.0)


@pytest.mark.slow
def test_the_filter_is_told_how_uncertain_the_covariance_is(monkeypatch):
    """Σ̂ is known up to a relative 2ε log 1/ε."""
    seen = []

    def told(*arguments, slack, **options):
        seen.append(float(slack))
        return plain(*arguments, slack=slack, **options)

    plain = filter_and_trim.estimated_span_filter
    monkeypatch.setattr(filter_and_trim, "estimated_span_filter", told)
    rows, x, labels, *_ = sample()
    for epsilon in (0.0, 0.05, 0.2):
        robust_reward(*map(jnp.asarray, (rows, x, labels)), epsilon, radius=RADIUS)
    np.testing.assert_allclose(seen, [0.0, 0.1 * np.log(20), 0.4 * np.log(5)], rtol=1e-5)


@pytest.mark.slow
def test_by_default_trimming_also_starts_from_the_row_normalised_fit():
    """The 90 surest of 600 labels flipped: from θ = 0 alone trimming ends at another reward."""
    rng = np.random.default_rng(2)
    x, theta = rng.normal(size=(600, 4)), np.array([1.0, -1.0, 0.5, 0.0])
    labels = np.where(rng.uniform(size=600) < scipy.special.expit(x @ theta), 1.0, -1.0)
    surest = np.argsort(-np.abs(x @ theta))[:90]
    labels[surest] = -np.sign((x @ theta)[surest])
    data = [jnp.asarray(part, jnp.float32) for part in (x, x, labels, 0.15)]
    alone = jax.jit(lambda *a: robust_reward(*a, radius=RADIUS, robust_start=False))(*data)
    assert cosine(estimate(*data).fit.theta, theta) > 0.9
    assert cosine(alone.fit.theta, theta) < 0.7
