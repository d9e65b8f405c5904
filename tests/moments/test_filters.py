"""Robust mean and covariance: an independent NumPy filter, classical limits, and contaminated data."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.covariance import MinCovDet

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.kernels import running_moments, spectral
from robust_rlhf_jax.kernels.running_moments import updates_pay
from robust_rlhf_jax.kernels.spectral import quadratic_scores
from robust_rlhf_jax.moments import filter_mean, robust_covariance, robust_mean

EPSILON = 0.1
# √(log 1/ε)·ε: what a stable set of normal rows allows, with constant one.
STABLE = EPSILON * np.sqrt(np.log(1 / EPSILON))


def contaminated(kind, n=1000, d=5, seed=0, epsilon=EPSILON):
    """(rows, which are clean): standard normal rows, ⌊εn⌋ of them replaced, in random places."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    bad = rng.choice(n, int(epsilon * n), replace=False)
    direction = np.linalg.qr(rng.normal(size=(d, d)))[0]
    if kind == "spike":  # a cloud as wide as the clean one, off by 10σ
        x[bad] += 10.0 * direction[0]
    elif kind == "point":
        x[bad] = 5.0 * direction[0]
    elif kind == "two_clusters":
        sides = np.where(np.arange(len(bad)) < len(bad) // 2, 8.0, 0.0)
        x[bad] = sides[:, None] * direction[0] + (8.0 - sides)[:, None] * direction[1]
        x[bad] += 0.1 * rng.normal(size=(len(bad), d))
    elif kind == "far":
        x[bad] = 1e4 * direction[0]
    return x, ~np.isin(np.arange(n), bad)


def above(scores, weights, mass):
    """The largest score t such that rows with score ≥ t weigh at least `mass`."""
    order = np.argsort(-scores)
    reached = np.flatnonzero(np.cumsum(weights[order]) >= mass)
    return scores[order][reached[0]] if len(reached) else -np.inf


def numpy_filter_mean(x, epsilon, level=0.0):
    """The filter from its description: scores along the top eigenvector, soft removal, budget 2εn."""
    n = len(x)
    weights = np.ones(n)
    for step in range(65):
        mean = np.average(x, axis=0, weights=weights)
        values, vectors = np.linalg.eigh(np.cov(x, rowvar=False, aweights=weights, ddof=0))
        scores = ((x - mean) @ vectors[:, -1]) ** 2
        gone = n - weights.sum()
        if values[-1] <= level or gone >= (2 - 1e-3) * epsilon * n or step == 64:
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


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="an accelerator sums all rows at every step")
@pytest.mark.parametrize(("wide", "tolerance"), [(False, 3e-4), (True, 1e-9)])
@pytest.mark.parametrize("kind", ["two_clusters", "far"])
@pytest.mark.parametrize("known", [False, True])
def test_many_wide_rows_against_an_independent_filter(known, kind, wide, tolerance):
    """Rows so many that a step only takes out of the sums what it removed, with a covariance far from I.

    In single precision another row or two may stand at a threshold, each 3/n of the mean.
    """
    n, d = 16_500, 32
    z, _ = contaminated(kind, n=n, d=d)
    scales = np.geomspace(0.1, 10.0, d)
    x, level = (z * scales, (1 + np.sqrt(d / n)) ** 2) if known else (z, 0.0)
    assert updates_pay(x.shape)
    mean, weights, top, steps = numpy_filter_mean(x / scales if known else x, EPSILON, level)
    with jax.enable_x64(wide):
        covariance = jnp.asarray(np.diag(scales**2)) if known else None
        found = filter_mean(jnp.asarray(x), EPSILON, covariance=covariance)
    whitened = np.asarray(found.mean) / (scales if known else 1.0)
    np.testing.assert_allclose(whitened, mean, atol=tolerance)
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


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.3, 0.45])
def test_the_budget_is_kept(epsilon):
    x, _ = contaminated("spike", epsilon=0.3)
    found = filter_mean(x.astype(np.float32), epsilon)
    assert (np.asarray(found.weights) >= 0).all()
    assert (np.asarray(found.weights) <= 1).all()
    assert 1000 - np.sum(found.weights, dtype=float) <= 2 * epsilon * 1000 * (1 + 1e-5)
    assert found.steps <= 16


def test_too_much_corruption_is_reported():
    """A quarter of the rows is corrupt, a twentieth was declared, and the covariance says so."""
    x, _ = contaminated("spike", epsilon=0.25)
    found = filter_mean(x.astype(np.float32), 0.05, covariance=jnp.eye(5))
    assert found.status == Status.FILTER_REMOVED_TOO_MUCH


def test_step_limit_is_reported():
    x, _ = contaminated("spike")
    found = filter_mean(x.astype(np.float32), EPSILON, max_steps=1)
    assert found.status == Status.MAX_STEPS
    assert found.steps == 1


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


def test_splits_outvote_a_corrupted_part():
    """Every fifth row is corrupt, so that interleaving puts all of it in one part of five."""
    x = np.random.default_rng(6).normal(size=(1000, 5)).astype(np.float32)
    x[::5] = 30.0
    assert np.linalg.norm(robust_mean(x, 0.0, splits=5)) < 5 * np.sqrt(5 / 200)
    assert np.linalg.norm(robust_mean(x, 0.0)) > 10


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


def check_moments(found, sigma, rank, tolerance):
    """Covariance, its roots and its rank belong together."""
    np.testing.assert_allclose(found.covariance, sigma, rtol=tolerance, atol=tolerance)
    assert found.rank == rank
    whitener, colourer = np.asarray(found.whitener), np.asarray(found.colourer)
    span = whitener @ colourer
    np.testing.assert_allclose(colourer @ colourer, sigma, atol=10 * tolerance)
    np.testing.assert_allclose(span, span @ span, atol=100 * tolerance)
    np.testing.assert_allclose(np.trace(span), rank, rtol=100 * tolerance)


@pytest.mark.parametrize(("wide", "tolerance"), [(False, 1e-5), (True, 1e-11)])
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("rank", [5, 3])
def test_covariance_without_corruption(wide, tolerance, centred, rank):
    rng = np.random.default_rng(8)
    x = rng.normal(size=(1000, rank)) @ rng.normal(size=(rank, 5))
    if rank == 5 or not centred:  # else the mean would be a direction of its own
        x = x + 0.5
    with jax.enable_x64(wide):
        found = robust_covariance(jnp.asarray(x), 0.0, assume_centered=centred)
        assert found.covariance.dtype == (jnp.float64 if wide else jnp.float32)
    sigma = x.T @ x / len(x) if centred else np.cov(x, rowvar=False, ddof=0)
    check_moments(found, sigma, rank, tolerance)
    np.testing.assert_allclose(found.mean, 0.0 if centred else x.mean(axis=0), atol=10 * tolerance)
    np.testing.assert_array_equal(found.weights, 1.0)
    assert found.steps == 0
    assert found.status == Status.CONVERGED


def relative_error(found, sigma):
    """‖Σ^{-1/2}(Σ̂ − Σ)Σ^{-1/2}‖₂."""
    root = np.linalg.inv(np.linalg.cholesky(sigma))
    return np.abs(np.linalg.eigvalsh(root @ (np.asarray(found, float) - sigma) @ root.T)).max()


@pytest.mark.parametrize("kind", ["spike", "point", "two_clusters", "far"])
def test_contaminated_covariance(kind):
    """Far below the empirical covariance, and of the order of the minimum covariance determinant."""
    mixing = np.random.default_rng(9).normal(size=(5, 5))
    z, clean = contaminated(kind, seed=2)
    x = z @ mixing.T
    oracle = np.cov(x[clean], rowvar=False, ddof=0)
    found = robust_covariance(x.astype(np.float32), EPSILON)
    error = relative_error(found.covariance, oracle)
    mcd = MinCovDet(assume_centered=False, support_fraction=1 - EPSILON, random_state=0).fit(x)
    # Clean tails go with the corrupt rows: ε log(1/ε), with the constant 2 of the fourth moment.
    assert error < 2 * EPSILON * np.log(1 / EPSILON)
    assert error < 0.25 * relative_error(np.cov(x, rowvar=False, ddof=0), oracle)
    assert error < 3 * relative_error(mcd.covariance_, oracle) + 0.1
    assert np.mean(np.asarray(found.weights)[~clean]) < 0.05
    assert np.mean(np.asarray(found.weights)[clean]) > 1 - 2 * EPSILON


@pytest.mark.parametrize("estimator", ["mean", "covariance"])
@pytest.mark.parametrize("change", ["permute", "rotate", "shift", "scale"])
def test_invariances(estimator, change, x64):
    x, _ = contaminated("two_clusters", seed=5)
    rng = np.random.default_rng(10)
    order, matrix, shift = np.arange(len(x)), np.eye(5), np.zeros(5)
    if change == "permute":
        order = rng.permutation(len(x))
    elif change == "rotate":
        matrix = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    elif change == "shift":
        shift = rng.normal(size=5)
    else:
        matrix = 3.0 * np.eye(5)
    other = x[order] @ matrix.T + shift
    estimate = {"mean": filter_mean, "covariance": robust_covariance}[estimator]
    plain, changed = (estimate(jnp.asarray(rows), EPSILON) for rows in (x, other))
    np.testing.assert_allclose(changed.weights, plain.weights[order], atol=1e-5)
    np.testing.assert_allclose(changed.mean, matrix @ plain.mean + shift, atol=1e-6)
    if estimator == "covariance":
        np.testing.assert_allclose(
            changed.covariance, matrix @ plain.covariance @ matrix.T, rtol=1e-5, atol=1e-6
        )


def test_removed_rows_leave_no_trace(x64):
    """Rounding turns the weight 0 of a removed row into 10⁻¹⁶ or not: nothing may hang on that."""
    x = np.random.default_rng(12).dirichlet(np.ones(4), 200)
    x[:5] = [0.0, 0.0, 0.0, 1.0]
    weights = np.ones(200)
    scores = jax.jit(quadratic_scores)
    found = []
    for dust in (0.0, 2e-16):
        weights[:5] = dust
        moment = (x.T * weights) @ x / weights.sum()
        values, vectors = np.linalg.eigh(moment)
        found.append(scores(jnp.asarray(x @ (vectors / np.sqrt(values))), jnp.asarray(weights)))
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-9)
    np.testing.assert_allclose(found[1][0][5:], found[0][0][5:], rtol=1e-6, atol=1e-9)


def test_covariance_is_affinely_equivariant(x64):
    """The degree-2 filter whitens by its own estimate: any basis gives the same weights."""
    x, _ = contaminated("spike", seed=6)
    mixing = np.random.default_rng(11).normal(size=(5, 5))
    plain = robust_covariance(jnp.asarray(x), EPSILON)
    mixed = robust_covariance(jnp.asarray(x @ mixing.T), EPSILON)
    np.testing.assert_allclose(np.mean(np.abs(mixed.weights - plain.weights)), 0.0, atol=1e-2)
    assert relative_error(mixed.covariance, mixing @ np.asarray(plain.covariance) @ mixing.T) < 0.02


@pytest.mark.parametrize("estimate", [robust_mean, filter_mean, robust_covariance])
@pytest.mark.parametrize(
    ("x", "epsilon", "message"),
    [
        (np.ones(3, np.float32), 0.1, r"shape \[n, d\]"),
        (np.ones((2, 3, 4), np.float32), 0.1, r"shape \[n, d\]"),
        (np.ones((3, 0), np.float32), 0.1, r"shape \[n, d\]"),
        (np.ones((4, 3), int), 0.1, "floating-point"),
        (np.ones((4, 3), np.float32), 0.5, r"outside \[0, 0\.5\)"),
        (np.ones((4, 3), np.float32), -0.1, r"outside \[0, 0\.5\)"),
    ],
)
def test_bad_arguments_are_named(estimate, x, epsilon, message):
    with pytest.raises(ValueError, match=message):
        estimate(x, epsilon)


@pytest.mark.parametrize("splits", [0, -1, 5])
def test_bad_splits_are_named(splits):
    with pytest.raises(ValueError, match="between 1 and the number of rows, 4"):
        robust_mean(np.ones((4, 2), np.float32), 0.1, splits=splits)


def test_ordinary_rows_do_not_go_with_the_last_far_ones():
    """Rare honest rows are far out too. Once they are gone, the filter must come to the planted ones, not to the rest.

    Two directions that 1.5 % of the rows each show, and a tenth of the rows planted at one point.
    """
    rng = np.random.default_rng(14)
    n = 4000
    x = np.concatenate([rng.normal(size=(n, 6)), np.zeros((n, 2))], axis=1)
    x[:60, 6], x[60:120, 7] = rng.choice([-1.0, 1.0], (2, 60))
    planted = np.arange(n) >= n - n // 10
    x[planted] = np.array([2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 0.5, 0.5])
    found = robust_covariance(jnp.asarray(x, jnp.float32), 0.1, assume_centered=True)
    weights = np.asarray(found.weights)
    assert found.status == Status.CONVERGED
    assert weights[planted].max() < 1e-3
    assert weights[120:][~planted[120:]].mean() > 0.99


@pytest.mark.parametrize("estimate", ["mean", "covariance"])
def test_doubt_adds_to_the_budget_but_not_to_the_level(estimate):
    """(2ε + doubt)·n of mass may go where the level is not reached before, and nothing of clean rows at ε = 0."""

    def run(x, epsilon, doubt):
        if estimate == "mean":
            return filter_mean(x, epsilon, covariance=jnp.eye(3), doubt=doubt)
        return robust_covariance(x, epsilon, assume_centered=True, doubt=doubt)

    rng = np.random.default_rng(5)
    x = rng.normal(size=(1000, 3)).astype(np.float32)
    x[:450] = 6.0 * np.sign(rng.normal(size=(450, 3))) * [2.0, 1.0, 0.0]
    gone = [1000 - float(jnp.sum(run(x, 0.05, doubt).weights)) for doubt in (0.0, 0.1)]
    np.testing.assert_allclose(gone, [100, 200], atol=1)
    np.testing.assert_array_equal(run(x, 0.0, 0.1).weights, 1.0)


def test_the_covariance_filter_returns_a_bound_on_its_top_eigenvalue():
    x, _ = contaminated("spike")
    for epsilon in (0.0, EPSILON):
        found = robust_covariance(jnp.asarray(x), epsilon)
        assert found.top_eigenvalue <= found.top_bound <= 1.15 * found.top_eigenvalue
