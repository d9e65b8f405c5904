"""The robust mean: an independent NumPy filter, its parts, and contaminated data."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from slow_parameters import slow

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.kernels import running_moments, spectral
from robust_rlhf_jax.kernels.running_moments import updates_pay
from robust_rlhf_jax.moments import filter_mean, robust_mean
from robust_rlhf_jax.moments.filters import EXCESS
from robust_rlhf_jax.moments.mean import refilter_mean

from .contaminated_rows import EPSILON, STABLE, above, contaminated


def numpy_filter_mean(x, epsilon, level=0.0, start=None, max_steps=64):
    """The filter from its description: scores along the top eigenvector, soft removal, budget 2εn."""
    n = len(x)
    weights = np.ones(n) if start is None else start
    for step in range(max_steps + 1):
        mean = np.average(x, axis=0, weights=weights)
        values, vectors = np.linalg.eigh(np.cov(x, rowvar=False, aweights=weights, ddof=0))
        scores = ((x - mean) @ vectors[:, -1]) ** 2
        gone = n - weights.sum()
        if values[-1] <= level or gone >= (2 - 1e-3) * epsilon * n or step == max_steps:
            return mean, weights, values[-1], step
        share = np.minimum(scores / above(scores, weights, epsilon * n / 8), 1.0)
        share[scores < above(scores, weights, epsilon * n)] = 0.0
        weights = weights * (1 - min(1.0, (2 * epsilon * n - gone) / (weights @ share)) * share)


@pytest.mark.parametrize(("wide", "tolerance"), [(False, 1e-4), (True, 1e-9)])
@pytest.mark.parametrize("kind", ["clean", "spike", "point", "two_clusters"])
def test_against_an_independent_filter(wide, tolerance, kind):
    x, _ = contaminated(kind)
    mean, weights, top, steps = numpy_filter_mean(x, EPSILON)
    with jax.enable_x64(wide):
        found = filter_mean(jnp.asarray(x), EPSILON)
        alone = robust_mean(jnp.asarray(x), EPSILON)
        assert found.mean.dtype == (jnp.float64 if wide else jnp.float32)
    np.testing.assert_allclose(found.mean, mean, rtol=tolerance, atol=tolerance)
    np.testing.assert_array_equal(alone, found.mean)
    np.testing.assert_allclose(found.top_eigenvalue, top, rtol=10 * tolerance)
    assert found.steps == steps
    assert found.status == Status.CONVERGED
    if wide:
        np.testing.assert_allclose(found.weights, weights, atol=1e-8)


def test_known_covariance_against_an_independent_filter(x64):
    """Whitening and the stopping level (1 + √(d/n))²(1 + slack); a filter that stops early, and one that need not."""
    rng = np.random.default_rng(3)
    mixing = rng.normal(size=(5, 5))
    sigma = mixing @ mixing.T
    values, vectors = np.linalg.eigh(sigma)
    whitener = (vectors / np.sqrt(values)) @ vectors.T
    for kind, slack in (("spike", 0.0), ("spike", 0.5), ("clean", 0.2)):
        z, _ = contaminated(kind, seed=4)
        x = z @ mixing.T
        level = (1 + np.sqrt(5 / 1000)) ** 2 * (1 + slack)
        _, weights, top, steps = numpy_filter_mean(x @ whitener, EPSILON, level)
        found = filter_mean(jnp.asarray(x), EPSILON, covariance=jnp.asarray(sigma), slack=slack)
        np.testing.assert_allclose(found.weights, weights, atol=1e-7)
        np.testing.assert_allclose(found.mean, np.average(x, axis=0, weights=weights), rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(found.top_eigenvalue, top, rtol=1e-8)
        assert found.steps == steps
        assert (steps > 0) == (kind == "spike")
    np.testing.assert_array_equal(weights, 1.0)


@functools.cache
def many_wide_rows(known, kind, n=16_500, d=32):
    """(rows, scales, what `numpy_filter_mean` makes of them), their covariance known and far from I, or unknown."""
    z, _ = contaminated(kind, n=n, d=d)
    scales = np.geomspace(0.1, 10.0, d) if known else np.ones(d)
    level = (1 + np.sqrt(d / n)) ** 2 if known else 0.0
    return z * scales, scales, numpy_filter_mean(z, EPSILON, level)


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="an accelerator sums all rows at every step")
@pytest.mark.parametrize(
    ("wide", "tolerance", "known"),
    [(False, 3e-4, True), slow(False, 3e-4, False), slow(True, 1e-9, True), (True, 1e-9, False)],
)
@pytest.mark.parametrize("kind", ["two_clusters", "far"])
def test_many_wide_rows_against_an_independent_filter(known, kind, wide, tolerance):
    """Rows so many that a step only takes out of the sums what it removed, with a covariance far from I.

    In single precision another row or two may stand at a threshold, each 3/n of the mean.
    """
    x, scales, (mean, weights, top, steps) = many_wide_rows(known, kind)
    assert updates_pay(x.shape)
    with jax.enable_x64(wide):
        covariance = jnp.asarray(np.diag(scales**2)) if known else None
        found = filter_mean(jnp.asarray(x), EPSILON, covariance=covariance)
    np.testing.assert_allclose(np.asarray(found.mean) / scales, mean, atol=tolerance)
    np.testing.assert_allclose(found.top_eigenvalue, top, rtol=10 * tolerance)
    assert found.steps == steps
    if wide:
        np.testing.assert_allclose(found.weights, weights, atol=1e-8)


@pytest.mark.parametrize("kind", ["spike", "point", "two_clusters", "far"])
def test_contaminated_mean(kind):
    """The mean of the clean rows up to what stability allows; the plain mean is several times further off."""
    for seed in range(3):
        x, clean = contaminated(kind, seed=seed)
        oracle = x[clean].mean(axis=0)
        error = np.linalg.norm(robust_mean(x.astype(np.float32), EPSILON) - oracle)
        assert error < STABLE
        assert np.linalg.norm(x.mean(axis=0) - oracle) > 3 * STABLE


def test_mean_without_corruption():
    x, _ = contaminated("clean")
    found = filter_mean(x.astype(np.float32), 0.0)
    np.testing.assert_allclose(found.mean, x.mean(axis=0), atol=1e-6)
    np.testing.assert_array_equal(found.weights, 1.0)
    assert found.steps == 0
    assert found.status == Status.CONVERGED


@pytest.mark.slow
@pytest.mark.parametrize("splits", [2, 5])
def test_splits_return_the_part_closest_to_the_others(splits):
    x, clean = contaminated("point", seed=1)
    x = x.astype(np.float32)
    found = robust_mean(x, EPSILON, splits=splits)
    size = len(x) // splits
    parts = np.stack(
        [numpy_filter_mean(x[i::splits][:size].astype(float), EPSILON)[0] for i in range(splits)]
    )
    distances = np.median(np.linalg.norm(parts[:, None] - parts[None], axis=-1), axis=1)
    np.testing.assert_allclose(found, parts[np.argmin(distances)], atol=1e-3)
    # One part holds n/splits rows: sampling error √(splits·d/n) comes on top of stability.
    assert np.linalg.norm(found - x[clean].mean(axis=0)) < STABLE + np.sqrt(splits * 5 / 1000)


@pytest.mark.slow
def test_splits_outvote_a_corrupted_part():
    """Every fifth row is corrupt, so that interleaving puts all of it in one part of five."""
    x = np.random.default_rng(6).normal(size=(1000, 5)).astype(np.float32)
    x[::5] = 30.0
    assert np.linalg.norm(robust_mean(x, 0.0, splits=5)) < 5 * np.sqrt(5 / 200)
    assert np.linalg.norm(robust_mean(x, 0.0)) > 10


@pytest.mark.slow
def test_many_dimensions(monkeypatch):
    """Above so many dimensions the eigenvector comes without a covariance."""
    monkeypatch.setattr(spectral, "DENSE_EIGH_UP_TO", 256)
    monkeypatch.setattr(running_moments, "DENSE_EIGH_UP_TO", 256)
    rng = np.random.default_rng(7)
    x = rng.normal(size=(400, 260))
    x[:40] += 20.0 / np.sqrt(260)
    expected, weights, top, _ = numpy_filter_mean(x, EPSILON)
    found = filter_mean(x.astype(np.float32), EPSILON)
    np.testing.assert_allclose(found.top_eigenvalue, top, rtol=0.02)
    assert np.mean(found.weights[:40]) < 0.05
    assert np.mean(weights[:40]) < 0.05
    oracle = x[40:].mean(axis=0)
    error = np.linalg.norm(found.mean - oracle)
    assert error < 1.2 * np.linalg.norm(expected - oracle)
    assert error < 0.3 * np.linalg.norm(x.mean(axis=0) - oracle)


@pytest.mark.parametrize("splits", [0, -1, 5])
def test_bad_splits_are_named(splits):
    with pytest.raises(ValueError, match="between 1 and the number of rows, 4"):
        robust_mean(np.ones((4, 2), np.float32), 0.1, splits=splits)


@pytest.mark.slow
@pytest.mark.parametrize("max_steps", [1, 64])
def test_a_filter_that_goes_on_is_the_independent_one(max_steps, x64):
    """From earlier weights to EXCESS mean eigenvalues, of rows whose lengths count up to the εn-th largest."""
    x, _ = contaminated("spike", epsilon=EPSILON / 2)
    start = np.where(np.arange(1000) % 40 == 0, 0.25, 1.0)
    lengths = np.sum((x - np.average(x, axis=0, weights=start)) ** 2, axis=1)
    clipped = np.minimum(lengths, above(lengths, start, 100))
    assert np.average(clipped, weights=start) < 0.8 * np.average(lengths, weights=start)
    level = EXCESS * np.average(clipped, weights=start) / 5
    _, expected, _, steps = numpy_filter_mean(x, EPSILON, level, start, max_steps)
    assert 0 < steps < 64
    assert 1000 - expected.sum() < 199
    found = refilter_mean(*map(jnp.asarray, (x, EPSILON, start)), max_steps)
    np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.slow
def test_slack_raises_the_level_that_a_known_covariance_gives(x64):
    """Rows twice as wide as was said: a slack of 4 calls them clean, one of 2 does not."""
    x = 2.0 * np.random.default_rng(17).normal(size=(400, 3))
    gone = [
        400 - filter_mean(jnp.asarray(x), EPSILON, covariance=jnp.eye(3), slack=slack).weights.sum()
        for slack in (4.0, 2.0)
    ]
    assert gone[0] == 0
    assert gone[1] > 0


@pytest.mark.slow
@pytest.mark.parametrize("covariance", [None, np.diag([4.0, 1.0, 1.0, 1.0, 0.25])])
def test_parts_and_their_options_are_those_of_the_filter(covariance, x64):
    x, _ = contaminated("point", n=1003, seed=1)
    options = {"covariance": None if covariance is None else jnp.asarray(covariance), "max_steps": 2}
    whole = robust_mean(jnp.asarray(x), EPSILON, **options)
    np.testing.assert_array_equal(whole, filter_mean(jnp.asarray(x), EPSILON, **options).mean)
    parts = np.stack([filter_mean(jnp.asarray(x[i::4][:250]), EPSILON, **options).mean for i in range(4)])
    distances = np.median(np.linalg.norm(parts[:, None] - parts[None], axis=-1), axis=1)
    found = robust_mean(jnp.asarray(x), EPSILON, splits=4, **options)
    np.testing.assert_allclose(found, parts[np.argmin(distances)], rtol=1e-10)


@pytest.mark.slow
def test_as_many_parts_as_rows_are_the_rows_and_of_two_in_a_tie_the_first_wins():
    x = np.array([[1.0], [0.0], [5.0]], np.float32)
    np.testing.assert_array_equal(robust_mean(x, EPSILON, splits=3), [1.0])


@pytest.mark.slow
def test_a_nan_in_one_part_is_not_voted_away():
    rows = jnp.ones((9, 2)).at[4, 0].set(jnp.nan)
    assert np.isnan(jax.jit(lambda x: robust_mean(x, EPSILON, splits=3))(rows)).all()


@pytest.mark.parametrize("centre", [0.0, 7.0, 1e4])
def test_rows_off_the_span_of_a_singular_covariance_weigh_nothing(centre):
    """The mean itself may lie off the span; a tilted span; honest rows stay, and at ε = 0 every row does."""
    rng = np.random.default_rng(11)
    rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    for turn in (np.eye(3), rotation):
        z = np.concatenate([rng.normal(size=(200, 2)), np.zeros((200, 1))], axis=1)
        z[:20, 2] = 50.0
        x = (z @ turn.T + centre).astype(np.float32)
        sigma = (turn @ np.diag([1.0, 1.0, 0.0]) @ turn.T).astype(np.float32)
        found = filter_mean(x, EPSILON, covariance=sigma)
        np.testing.assert_array_equal(found.weights[:20], 0.0)
        assert found.weights[20:].sum() > 175
        assert found.status == Status.CONVERGED
        off = (np.asarray(found.mean, float) - centre) @ turn[:, 2]
        assert abs(off) < 1e-5 * max(centre, 10.0)
        plain = filter_mean(x, 0.0, covariance=sigma)
        np.testing.assert_array_equal(plain.weights, 1.0)
        clean = filter_mean(x[20:], EPSILON, covariance=sigma)
        assert clean.weights.sum() > 0.95 * 180
    np.testing.assert_allclose(robust_mean(x, EPSILON, covariance=sigma), found.mean)


def test_a_span_that_most_rows_leave_is_not_believed_and_said():
    x = np.random.default_rng(12).normal(size=(100, 2)).astype(np.float32)
    found = filter_mean(x, EPSILON, covariance=np.diag([1.0, 0.0]))
    assert found.status == Status.FILTER_REMOVED_TOO_MUCH
    assert np.isfinite(found.mean).all()


@pytest.mark.parametrize(
    ("covariance", "said"),
    [
        (np.diag([1.0, np.nan]), r"covariance\[1, 1\] is nan"),
        (np.diag([1.0, -0.1]), "not positive semidefinite"),
        (np.array([[1.0, 2.0], [2.0, 1.0]]), "not positive semidefinite"),
        (np.array([[1.0, 0.5], [0.0, 1.0]]), "not symmetric"),
        (np.zeros((2, 2)), "all zero, but the rows of x differ"),
        (np.eye(3), r"give one of shape \(2, 2\)"),
        (np.ones(2), r"give one of shape \(2, 2\)"),
    ],
)
def test_what_is_no_covariance_of_the_rows_is_refused(covariance, said):
    x = np.random.default_rng(13).normal(size=(20, 2)).astype(np.float32)
    for mean in (filter_mean, robust_mean):
        with pytest.raises(ValueError, match=said):
            mean(x, 0.1, covariance=covariance)
    with pytest.raises(ValueError, match=said):
        robust_mean(x, 0.1, covariance=covariance, splits=2)


@pytest.mark.slow
def test_a_traced_covariance_that_is_not_finite_gets_a_status():
    x = np.random.default_rng(14).normal(size=(20, 2)).astype(np.float32)
    found = jax.jit(lambda c: filter_mean(x, 0.1, covariance=c))(jnp.diag(jnp.array([1.0, jnp.nan])))
    assert found.status == Status.NONFINITE
    assert np.isnan(found.mean).all()
