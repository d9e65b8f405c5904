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
from robust_rlhf_jax.kernels.units import LONGEST
from robust_rlhf_jax.moments import covariance, filter_mean, robust_covariance, robust_mean
from robust_rlhf_jax.moments.covariance import (
    LONGEST_SCORED,
    CovarianceFilter,
    _covariance_problem,
    filter_whitened,
)
from robust_rlhf_jax.moments.filters import (
    CHOP,
    EXCESS,
    Filter,
    FilterProblem,
    FilterState,
    budget,
    spectral_edge,
)
from robust_rlhf_jax.moments.influence import bounded_rows
from robust_rlhf_jax.moments.mean import MeanFilter, refilter_mean

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


def state_of(gone, top, n=10):
    """The state of a filter of n rows that removed a mass."""
    return FilterState(jnp.ones(n).at[0].set(1.0 - gone), jnp.zeros(n), jnp.asarray(top))


@pytest.mark.parametrize(
    ("gone", "top", "epsilon", "level", "status"),
    [
        (0.0, np.inf, 0.1, 1.0, Status.RUNNING),  # not scored yet
        (0.0, 1.0, 0.1, 1.0, Status.CONVERGED),  # exactly at the level
        (0.0, 1.0 + 1e-6, 0.1, 1.0, Status.RUNNING),
        (1.0, 2.0, 0.1, 1.0, Status.RUNNING),
        (2.0, 2.0, 0.1, 1.0, Status.CONVERGED),  # the budget is spent
        (2.0, 1.0, 0.1, 1.0, Status.CONVERGED),  # and the level reached
        (2.0 - 0.9e-3, 2.0, 0.1, 1.0, Status.CONVERGED),  # up to rounding
        (2.0 - 1.1e-3, 2.0, 0.1, 1.0, Status.RUNNING),
        (2.0, EXCESS, 0.1, 1.0, Status.CONVERGED),
        (2.0, EXCESS + 1e-6, 0.1, 1.0, Status.FILTER_REMOVED_TOO_MUCH),
        (2.0, 2.0 * EXCESS, 0.1, 2.0, Status.CONVERGED),
        (2.0, 100.0, 0.1, 0.0, Status.CONVERGED),  # no level is known
        (0.0, 100.0, 0.0, 1.0, Status.CONVERGED),  # no row may go
    ],
)
def test_a_filter_ends_at_its_level_or_with_its_budget(gone, top, epsilon, level, status, x64):
    problem = FilterProblem(jnp.ones((10, 1)), *map(jnp.asarray, (epsilon, level, 20 * epsilon)))
    assert MeanFilter().terminate(problem, state_of(gone, top)) == status


@pytest.mark.slow
def test_a_step_removes_what_the_budget_still_allows(x64):
    """2·CHOP such chops make the budget, and no more rows than εn are suspect."""
    rng = np.random.default_rng(15)
    weights, scores = rng.uniform(0.5, 1.0, 40), rng.exponential(size=40)
    allowed = 40 - weights.sum() + 0.7
    problem = FilterProblem(rng.normal(size=(40, 2)), *map(jnp.asarray, (0.2, 1.0, allowed)))
    state = FilterState(jnp.asarray(weights), jnp.asarray(scores), jnp.asarray(5.0))
    found = jax.jit(lambda *args: MeanFilter().step(*args, key=None))(problem, state)
    expected = jax.jit(spectral.remove_softly)(state.weights, state.scores, 8.0, allowed / (2 * CHOP), 0.7)
    np.testing.assert_allclose(found.weights, expected, rtol=1e-12)
    assert 40 - found.weights.sum() <= allowed + 1e-12


def test_the_edge_of_the_spectrum_is_that_of_marchenko_and_pastur(x64):
    found = spectral_edge(jnp.asarray(25.0), 100, jnp.float64)
    assert found.dtype == jnp.float64
    np.testing.assert_allclose(found, 2.25, rtol=1e-12)


def test_the_budget_is_twice_epsilon_and_the_doubt_and_nothing_where_all_are_trusted():
    np.testing.assert_allclose(budget(jnp.asarray(0.1), 0.05, 40), 10.0, rtol=1e-6)
    assert budget(jnp.asarray(0.0), 0.05, 40) == 0.0


@pytest.mark.parametrize("missing", ["look", "extract"])
def test_a_filter_without_scores_or_result_cannot_be_made(missing):
    parts = {"look": MeanFilter.look, "extract": MeanFilter.extract}
    del parts[missing]
    with pytest.raises(TypeError, match=missing):
        type("Half", (Filter,), {**parts, "__annotations__": {}})()


@pytest.mark.slow
@pytest.mark.parametrize("estimate", [filter_mean, robust_covariance])
def test_without_a_step_nothing_is_removed(estimate):
    x, _ = contaminated("spike")
    found = estimate(x.astype(np.float32), EPSILON, max_steps=0)
    assert found.steps == 0
    assert found.status == Status.MAX_STEPS
    np.testing.assert_array_equal(found.weights, 1.0)


def test_rows_that_are_nan_end_a_filter_before_its_first_step():
    x = contaminated("clean")[0].astype(np.float32)
    x[2, 1] = np.nan
    for found in (filter_mean(x, EPSILON), robust_covariance(x, EPSILON)):
        assert found.steps == 0
        assert found.status == Status.NONFINITE


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
def test_rows_too_long_are_shortened_before_the_first_step_unless_all_are_trusted(x64):
    x = np.random.default_rng(16).normal(size=(50, 3))
    x[7] *= 1e9
    lengths = np.linalg.norm(x, axis=1)
    typical = np.sort(lengths)[::-1][24]
    shortened = x * np.minimum(1.0, LONGEST * typical / lengths)[:, None]
    for epsilon, rows in ((0.0, x), (EPSILON, shortened)):
        found = filter_mean(jnp.asarray(x), epsilon, max_steps=0)
        np.testing.assert_allclose(found.mean, rows.mean(axis=0), rtol=1e-10)
        top = np.linalg.eigvalsh(np.cov(rows, rowvar=False, ddof=0))[-1]
        np.testing.assert_allclose(found.top_eigenvalue, top, rtol=1e-9)


def test_unnamed_options_are_no_slack_no_doubt_and_one_part(x64):
    x = jnp.asarray(contaminated("spike")[0])
    plain, named = filter_mean(x, EPSILON), filter_mean(x, EPSILON, slack=0.0, doubt=0.0)
    np.testing.assert_array_equal(plain.weights, named.weights)
    plain, named = (filter_mean(x, EPSILON, covariance=jnp.eye(5), **more) for more in ({}, {"slack": 0.0}))
    np.testing.assert_array_equal(plain.weights, named.weights)
    np.testing.assert_array_equal(robust_mean(x, EPSILON), robust_mean(x, EPSILON, splits=1))
    plain = robust_covariance(x, EPSILON)
    named = robust_covariance(x, EPSILON, assume_centered=False, doubt=0.0)
    np.testing.assert_array_equal(plain.weights, named.weights)


@pytest.mark.parametrize("estimate", [filter_mean, robust_mean, robust_covariance])
def test_options_must_be_named(estimate):
    with pytest.raises(TypeError):
        estimate(np.ones((4, 2), np.float32), 0.1, None)


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


@pytest.mark.parametrize("estimate", [filter_mean, robust_mean, robust_covariance])
def test_no_rows_are_refused(estimate):
    with pytest.raises(ValueError, match=r"shape \[n, d\]"):
        estimate(np.ones((0, 3), np.float32), 0.1)


def test_the_covariance_filter_stops_at_the_level_of_normal_rows(x64):
    """2(1 + √(r(r+1)/2n))², with the budget of the mean's filter."""
    rows = jnp.ones((200, 4))
    problem = _covariance_problem(rows, jnp.asarray(0.1), 3)
    np.testing.assert_allclose(problem.level, 2 * (1 + np.sqrt(6 / 200)) ** 2, rtol=1e-12)
    np.testing.assert_allclose(problem.budget, 40.0, rtol=1e-12)
    np.testing.assert_allclose(_covariance_problem(rows, jnp.asarray(0.1), 3, 0.05).budget, 50.0, rtol=1e-12)
    assert problem.epsilon == 0.1
    assert problem.x is rows


def test_weights_of_white_rows_are_those_of_the_covariance(x64):
    z, _ = contaminated("spike", seed=3)
    expected = robust_covariance(jnp.asarray(z), EPSILON, assume_centered=True)
    found = jax.jit(filter_whitened)(jnp.asarray(z), jnp.asarray(EPSILON), 5)
    np.testing.assert_allclose(found, expected.weights, atol=1e-9)
    assert found.sum() < 950


@pytest.mark.parametrize("centred", [False, True])
def test_whitened_rows_have_unit_moments_and_no_endless_length(centred, x64):
    rng = np.random.default_rng(18)
    x, weights = rng.normal(size=(60, 3)) + 1.0, rng.uniform(0.5, 1.0, 60)
    x[0], weights[0] = 1e9, 1e-20
    y = np.asarray(jax.jit(CovarianceFilter(centred).whitened)(x, weights))
    np.testing.assert_allclose((y[1:].T * weights[1:]) @ y[1:] / weights.sum(), np.eye(3), atol=0.05)
    np.testing.assert_allclose(np.linalg.norm(y[0]), LONGEST_SCORED, rtol=1e-9)
    if not centred:
        np.testing.assert_allclose(weights[1:] @ y[1:] / weights.sum(), 0.0, atol=1e-9)


def test_a_covariance_filter_takes_rows_for_centred_unless_told():
    assert CovarianceFilter().assume_centered


@pytest.mark.slow
@pytest.mark.parametrize("rank", [3, 2])
def test_roots_of_a_covariance_in_units_far_apart(rank, x64):
    rng = np.random.default_rng(19)
    units = np.array([1e-3, 1.0, 1e3])
    x = rng.normal(size=(100, rank)) @ rng.normal(size=(rank, 3)) * units
    found = robust_covariance(jnp.asarray(x), 0.0)
    sigma = np.cov(x, rowvar=False, ddof=0)
    values, vectors = np.linalg.eigh(sigma)
    roots = np.where(values > 1e-14 * values[-1], np.sqrt(np.maximum(values, 0.0)), 0.0)
    assert found.rank == np.sum(roots > 0) == rank
    colourer = (vectors * roots) @ vectors.T
    np.testing.assert_allclose(found.colourer, colourer, atol=1e-8 * roots[-1])
    span = vectors * (roots > 0) @ vectors.T
    np.testing.assert_allclose(found.whitener @ found.colourer, span, atol=1e-6)
    # What the whitener makes of the rows has unit variance in as many directions as they have.
    y = (x - x.mean(axis=0)) @ np.asarray(found.whitener)
    np.testing.assert_allclose(np.linalg.eigvalsh(y.T @ y / 100), np.arange(3) >= 3 - rank, atol=1e-5)


def test_only_the_filter_for_the_mean_follows_moments_and_only_where_updates_pay():
    def moments(solver, shape):
        def of(x):
            problem = FilterProblem(x, *jnp.zeros(3))
            return solver.init(problem, key=None).moments

        return jax.eval_shape(of, jax.ShapeDtypeStruct(shape, jnp.float32))

    assert moments(CovarianceFilter(), (40_000, 100)) is None
    assert moments(MeanFilter(), (400, 100)) is None
    assert (moments(MeanFilter(), (40_000, 100)) is not None) == updates_pay((40_000, 100))


def test_columns_of_zeros_and_of_signs_are_not_beyond_the_range():
    """A variance of 0 is lost only where the rows have one, and 1 is a variance like any other."""
    x = np.ones((1000, 5), np.float32)
    x[::2, 1], x[:, 2] = -1.0, 0.0
    found = robust_covariance(x, 0.0, assume_centered=True)
    assert found.status == Status.CONVERGED
    assert found.rank == 2
    np.testing.assert_allclose(np.diag(found.covariance), [1.0, 1.0, 0.0, 1.0, 1.0], rtol=1e-6)


@pytest.mark.slow
def test_long_rows_of_a_covariance_are_shortened_unless_all_are_trusted(x64):
    x, _ = contaminated("clean")
    x[7] *= 1e9
    bounded = np.asarray(bounded_rows(jnp.asarray(x), jnp.asarray(EPSILON)))
    assert np.linalg.norm(bounded[7]) < 1e6
    for epsilon, rows in ((0.0, x), (EPSILON, bounded)):
        found = robust_covariance(jnp.asarray(x), epsilon, assume_centered=True, max_steps=0)
        np.testing.assert_allclose(found.covariance, rows.T @ rows / 1000, rtol=1e-9)


def numpy_filter_covariance(x, epsilon):
    """The filter of degree 2 from its description, the d²×d² covariance formed and applied; rows centred at 0."""
    n, d = x.shape
    level = 2.0 * (1.0 + np.sqrt(d * (d + 1) / 2 / n)) ** 2
    weights = np.ones(n)
    for step in range(65):
        values, vectors = np.linalg.eigh((x.T * weights) @ x / weights.sum())
        y = x @ vectors / np.sqrt(values)
        squares = np.einsum("ni,nj->nij", y, y).reshape(n, -1)
        squares = squares - np.average(squares, axis=0, weights=weights)
        top = np.kron(*2 * [y[np.argmax(weights * np.sum(y**2, axis=1))]])
        for _ in range(spectral.POWER_STEPS):
            top = (squares.T * weights) @ (squares @ top)
            top /= np.linalg.norm(top)
        scores = (squares @ top) ** 2
        value = np.average(scores, weights=weights)
        gone = n - weights.sum()
        if value <= level or gone >= (2 - 1e-3) * epsilon * n:
            return weights, value, step
        far = np.max(scores[weights > 1e-5]) / 64
        share = np.minimum(scores / max(above(scores, weights, epsilon * n / 8), far), 1.0)
        share[scores < above(scores, weights, epsilon * n)] = 0.0
        weights = weights * (1 - min(1.0, (2 * epsilon * n - gone) / (weights @ share)) * share)
    return None


@pytest.mark.parametrize(("kind", "epsilon"), [("spike", 0.1), ("spike", 0.03), ("far", 0.1), ("clean", 0.1)])
def test_the_covariance_filter_against_an_independent_one(kind, epsilon, x64):
    x, _ = contaminated(kind, seed=7)
    if kind == "far":
        x = x + 0.1 * np.random.default_rng(8).normal(size=x.shape)
    weights, top, steps = numpy_filter_covariance(x, epsilon)
    found = robust_covariance(jnp.asarray(x), epsilon, assume_centered=True)
    assert found.steps == steps
    assert (steps > 0) == (kind != "clean")
    np.testing.assert_allclose(found.weights, weights, atol=1e-6)
    np.testing.assert_allclose(found.top_eigenvalue, top, rtol=1e-6)
    assert (found.status == Status.CONVERGED) == (epsilon == 0.1)


@pytest.mark.slow
def test_a_far_row_hides_no_direction_from_the_level(monkeypatch, x64):
    """Two columns that differ in their last digits, and a row so long that its square would hide the difference."""
    ranks, plain = [], covariance._covariance_problem

    def watched(rows, epsilon, rank, doubt):
        jax.debug.callback(lambda r: ranks.append(int(r)), rank)
        return plain(rows, epsilon, rank, doubt)

    monkeypatch.setattr(covariance, "_covariance_problem", watched)
    rng = np.random.default_rng(20)
    x = rng.normal(size=(103, 1)) + 2e-14 * rng.normal(size=(103, 2))
    x[5] = 1e5
    jax.block_until_ready(robust_covariance(jnp.asarray(x), EPSILON, assume_centered=True, max_steps=0))
    jax.effects_barrier()
    assert ranks == [2]
