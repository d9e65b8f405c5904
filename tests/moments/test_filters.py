"""What the filters for the mean and the covariance share: budgets, levels, ends, invariances, bad arguments."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.kernels import removal
from robust_rlhf_jax.kernels.running_moments import updates_pay
from robust_rlhf_jax.kernels.spectral import quadratic_scores
from robust_rlhf_jax.kernels.units import LONGEST
from robust_rlhf_jax.moments import filter_mean, robust_covariance, robust_mean
from robust_rlhf_jax.moments.covariance import CovarianceFilter
from robust_rlhf_jax.moments.filters import (
    CHOP,
    EXCESS,
    Filter,
    FilterProblem,
    FilterState,
    budget,
    spectral_edge,
)
from robust_rlhf_jax.moments.mean import MeanFilter

from .contaminated_rows import EPSILON, contaminated


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.3, 0.45])
def test_the_budget_is_kept(epsilon):
    x, _ = contaminated("spike", epsilon=0.3)
    found = filter_mean(x.astype(np.float32), epsilon)
    assert (np.asarray(found.weights) >= 0).all()
    assert (np.asarray(found.weights) <= 1).all()
    assert 1000 - np.sum(found.weights, dtype=float) <= 2 * epsilon * 1000 * (1 + 1e-5)
    assert found.steps <= 16


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("seed", [14, 20])
def test_ordinary_rows_do_not_go_with_the_last_far_ones(seed):
    """Rare honest rows are far out too. Once they are gone, the filter must come to the planted ones, not to the rest.

    Two directions that 1.5 % of the rows each show, and a tenth of the rows planted at one point.
    """
    rng = np.random.default_rng(seed)
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


@pytest.mark.slow
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
    expected = jax.jit(removal.remove_softly)(state.weights, state.scores, 8.0, allowed / (2 * CHOP), 0.7)
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


@pytest.mark.slow
def test_rows_that_are_nan_end_a_filter_before_its_first_step():
    x = contaminated("clean")[0].astype(np.float32)
    x[2, 1] = np.nan
    for found in (filter_mean(x, EPSILON), robust_covariance(x, EPSILON)):
        assert found.steps == 0
        assert found.status == Status.NONFINITE


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


@pytest.mark.slow
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


@pytest.mark.parametrize("estimate", [filter_mean, robust_mean, robust_covariance])
def test_no_rows_are_refused(estimate):
    with pytest.raises(ValueError, match=r"shape \[n, d\]"):
        estimate(np.ones((0, 3), np.float32), 0.1)


def test_only_the_filter_for_the_mean_follows_moments_and_only_where_updates_pay():
    def moments(solver, shape):
        def of(x):
            problem = FilterProblem(x, *jnp.zeros(3))
            return solver.init(problem, key=None).moments

        return jax.eval_shape(of, jax.ShapeDtypeStruct(shape, jnp.float32))

    assert moments(CovarianceFilter(), (40_000, 100)) is None
    assert moments(MeanFilter(), (400, 100)) is None
    assert (moments(MeanFilter(), (40_000, 100)) is not None) == updates_pay((40_000, 100))
