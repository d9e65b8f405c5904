"""Scores of the filter against explicit covariance matrices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from robust_rlhf_jax.kernels import running_moments, spectral
from robust_rlhf_jax.kernels.lanczos import lanczos_shortfall
from robust_rlhf_jax.kernels.removal import remove_softly

# Jitted: run eagerly, each of a kernel's operations would be compiled by itself.
linear_scores = jax.jit(spectral.linear_scores)
quadratic_scores = jax.jit(spectral.quadratic_scores, static_argnames="steps")
remove = jax.jit(remove_softly)


def numpy_linear(x, weights):
    mean = np.average(x, axis=0, weights=weights)
    centred = x - mean
    values, vectors = np.linalg.eigh((centred.T * weights) @ centred / weights.sum())
    return (centred @ vectors[:, -1]) ** 2, values[-1], mean


def numpy_quadratic(y, weights):
    """The covariance of the d²-vectors vec(yyᵀ), formed and decomposed."""
    vectors = np.einsum("ni,nj->nij", y, y).reshape(len(y), -1)
    centred = vectors - np.average(vectors, axis=0, weights=weights)
    values, directions = np.linalg.eigh((centred.T * weights) @ centred / weights.sum())
    return (centred @ directions[:, -1]) ** 2, values[-1]


def corrupted_sample(n=400, d=4, share=0.1, size=6.0, seed=0):
    """Standard normal rows; the last `share` of them lie near `size` times a fixed unit vector."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    direction = np.linalg.qr(rng.normal(size=(d, d)))[0][0]
    bad = int(share * n)
    x[-bad:] = size * direction + 0.1 * rng.normal(size=(bad, d))
    return x, rng.uniform(0.5, 1.0, n), np.arange(n) >= n - bad


@pytest.mark.parametrize(("wide", "tolerance"), [(False, 1e-3), (True, 1e-9)])
def test_linear_scores_against_numpy(wide, tolerance):
    x, weights, bad = corrupted_sample()
    expected = numpy_linear(x, weights)
    with jax.enable_x64(wide):
        scores, value, mean = map(np.asarray, linear_scores(jnp.asarray(x), jnp.asarray(weights)))
        assert scores.dtype == (jnp.float64 if wide else jnp.float32)
    np.testing.assert_allclose(scores, expected[0], rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(value, expected[1], rtol=tolerance)
    np.testing.assert_allclose(mean, expected[2], rtol=tolerance, atol=tolerance)
    assert np.mean(scores[bad]) > 5 * np.mean(scores[~bad])


@pytest.fixture
def no_covariance(monkeypatch):
    """So many dimensions that none is formed, at a size that tests can afford."""
    monkeypatch.setattr(spectral, "DENSE_EIGH_UP_TO", 256)


@pytest.mark.slow
def test_linear_scores_of_many_dimensions(x64, no_covariance):
    x, weights, _ = corrupted_sample(n=500, d=300, share=0.1, size=15.0)
    expected = numpy_linear(x, weights)
    scores, value, _ = linear_scores(jnp.asarray(x), jnp.asarray(weights))
    np.testing.assert_allclose(value, expected[1], rtol=1e-6)
    np.testing.assert_allclose(scores, expected[0], rtol=1e-3, atol=1e-3)


@pytest.mark.slow
def test_a_narrow_gap_of_many_dimensions_is_resolved(x64, no_covariance):
    """Twelve power steps would not tell 1 from .95."""
    deviations = np.sqrt(np.concatenate([[1.0, 0.95], np.full(298, 0.5)]))
    x = np.random.default_rng(0).normal(size=(2000, 300)) * deviations
    expected = numpy_linear(x, np.ones(2000))
    scores, value, _ = linear_scores(jnp.asarray(x), jnp.ones(2000))
    np.testing.assert_allclose(value, expected[1], rtol=1e-8)
    assert np.corrcoef(scores, expected[0])[0, 1] > 0.9999


@pytest.mark.slow
def test_a_flat_spectrum_of_many_dimensions(no_covariance):
    """Rows whitened by their own moment: all eigenvalues are 1 or 0, and LOBPCG's residuals vanish."""
    x = np.random.default_rng(0).normal(size=(1500, 300))
    x[:, 280:] = 0.0
    x -= x.mean(axis=0)
    values, vectors = np.linalg.eigh(x[:, :280].T @ x[:, :280] / len(x))
    x[:, :280] = x[:, :280] @ vectors / np.sqrt(values)
    scores, value, _ = linear_scores(jnp.asarray(x, jnp.float32), jnp.ones(len(x), jnp.float32))
    assert np.isfinite(scores).all()
    np.testing.assert_allclose(value, 1.0, rtol=1e-3)


def test_nan_rows_of_many_dimensions_stay_nan(no_covariance):
    """A NaN is for the status to report, not for the fallback to hide."""
    x = jnp.ones((400, 300)).at[3, 5].set(jnp.nan)
    assert np.isnan(linear_scores(x, jnp.ones(400))[1])


@pytest.mark.parametrize(("wide", "tolerance"), [(False, 2e-3), (True, 1e-7)])
def test_quadratic_scores_against_the_explicit_covariance(wide, tolerance):
    y, weights, bad = corrupted_sample()
    expected, top = numpy_quadratic(y, weights)
    with jax.enable_x64(wide):
        scores, value = map(np.asarray, quadratic_scores(jnp.asarray(y), jnp.asarray(weights)))
    np.testing.assert_allclose(value, top, rtol=tolerance)
    np.testing.assert_allclose(scores, expected, rtol=tolerance, atol=tolerance * top)
    assert np.mean(scores[bad]) > 5 * np.mean(scores[~bad])


def test_power_iteration_converges_to_the_top(x64):
    y, weights, _ = corrupted_sample(size=2.5, seed=3)
    top = numpy_quadratic(y, weights)[1]
    values = [
        float(quadratic_scores(jnp.asarray(y), jnp.asarray(weights), steps)[1]) for steps in (1, 12, 200)
    ]
    assert all(v <= top * (1 + 1e-12) for v in values), "a Rayleigh quotient never exceeds the eigenvalue"
    np.testing.assert_allclose(values[-1], top, rtol=1e-6)
    assert values == sorted(values)


def test_quadratic_value_of_normal_data_is_two():
    y = np.random.default_rng(5).normal(size=(20_000, 3)).astype(np.float32)
    value = quadratic_scores(jnp.asarray(y), jnp.ones(20_000))[1]
    # var of the sample's ⟨yyᵀ − I, M⟩² is at most that of (z² − 1)²/… for M of rank one: 60 − 4 = 56.
    assert abs(value - 2.0) < 5 * np.sqrt(56 / 20_000) + 0.05


@pytest.mark.parametrize("name", ["linear_scores", "quadratic_scores"])
@pytest.mark.parametrize("change", ["permute", "rotate", "scale_weights", "drop_zero_weights", "scale_data"])
def test_invariances(name, change, x64):
    score = {"linear_scores": linear_scores, "quadratic_scores": quadratic_scores}[name]
    x, weights, _ = corrupted_sample(seed=7)
    weights[::7] = 0.0
    plain, value, *_ = score(jnp.asarray(x), jnp.asarray(weights))
    plain, value = np.asarray(plain), float(value)
    rng = np.random.default_rng(1)
    power = 2 if name == "linear_scores" else 4
    factor = 1.0
    if change == "permute":
        order = rng.permutation(len(x))
        x, weights, plain = x[order], weights[order], plain[order]
    elif change == "rotate":
        x = x @ np.linalg.qr(rng.normal(size=(4, 4)))[0]
    elif change == "scale_weights":
        weights = 0.01 * weights
    elif change == "drop_zero_weights":
        x, weights, plain = x[weights > 0], weights[weights > 0], plain[weights > 0]
    else:
        x, factor = 3.0 * x, 3.0**power
    scores, new_value, *_ = score(jnp.asarray(x), jnp.asarray(weights))
    np.testing.assert_allclose(scores, factor * plain, rtol=1e-6, atol=1e-7 * factor * plain.max())
    np.testing.assert_allclose(new_value, factor * value, rtol=1e-9)


def test_translation_moves_only_the_mean(x64):
    x, weights, _ = corrupted_sample()
    shift = np.array([10.0, -4.0, 0.0, 1.0])
    first = linear_scores(jnp.asarray(x), jnp.asarray(weights))
    moved = linear_scores(jnp.asarray(x + shift), jnp.asarray(weights))
    np.testing.assert_allclose(moved[0], first[0], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(moved[1], first[1], rtol=1e-12)
    np.testing.assert_allclose(moved[2], first[2] + shift, rtol=1e-12)


def test_degenerate_data_score_zero():
    for data in (jnp.zeros((5, 3)), jnp.ones((5, 3))):
        np.testing.assert_allclose(linear_scores(data, jnp.ones(5))[0], 0.0, atol=1e-10)
        np.testing.assert_allclose(quadratic_scores(data, jnp.ones(5))[0], 0.0, atol=1e-10)


def test_one_step_takes_more_from_the_corrupt_than_from_the_sound(x64):
    x, weights, bad = corrupted_sample()
    scores = linear_scores(jnp.asarray(x), jnp.asarray(weights))[0]
    after = np.asarray(remove(jnp.asarray(weights), scores, weights[bad].sum(), 4.0, np.inf))
    lost = weights - after
    assert lost[bad].sum() > 20 * lost[~bad].sum()


@pytest.mark.parametrize("whitened", [False, True])
def test_scores_from_moments_are_those_of_the_rows(whitened, x64):
    x, weights, _ = corrupted_sample()
    root = np.random.default_rng(5).normal(size=(x.shape[1],) * 2)
    whitener = root + root.T if whitened else None
    moments = jax.jit(running_moments.moments_of)(x, weights, whitener)
    scores, value = jax.jit(spectral.scores_from_moments)(x, moments, whitener)
    expected = numpy_linear(x @ whitener if whitened else x, weights)
    np.testing.assert_allclose(scores, expected[0], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(value, expected[1], rtol=1e-10)


def test_power_iteration_is_a_loop_in_numpy(x64):
    """The Rayleigh quotient and the direction after `POWER_STEPS` applications."""
    rng = np.random.default_rng(8)
    root = rng.normal(size=(6, 6))
    matrix, start = root @ root.T, rng.normal(size=6)
    direction = start
    for _ in range(spectral.POWER_STEPS):
        direction = matrix @ direction / np.linalg.norm(matrix @ direction)
    value, found = spectral.top_by_power(lambda v: jnp.asarray(matrix) @ v, jnp.asarray(start))
    np.testing.assert_allclose(found, direction, rtol=1e-11)
    np.testing.assert_allclose(value, direction @ matrix @ direction, rtol=1e-12)
    further = matrix @ direction / np.linalg.norm(matrix @ direction)
    assert np.abs(further - direction).max() > 1e-6


def test_power_iteration_on_nothing_ends_in_zero():
    value, direction = spectral.top_by_power(lambda v: 0.0 * v, jnp.ones(3))
    assert value == 0
    np.testing.assert_array_equal(direction, 0.0)


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_quadratic_power_steps_begin_at_the_row_farthest_out_by_weight(steps, x64):
    """A row of no weight is not it, however far it lies, nor one of little weight."""
    y, weights, _ = corrupted_sample(n=40)
    y[0], weights[0] = 1e3 * np.eye(4)[0], 0.0
    y[1], weights[1] = 30.0 * np.eye(4)[1], 1e-3
    first = y[np.argmax(weights * np.sum(y**2, axis=1))]
    assert np.linalg.norm(first) < 20
    m = np.outer(first, first) / np.linalg.norm(np.outer(first, first))
    share = weights / weights.sum()

    def polynomial(m):
        form = np.einsum("ni,ij,nj->n", y, m, y)
        return form - share @ form

    for _ in range(steps):
        m = (y.T * (share * polynomial(m))) @ y
        m /= np.linalg.norm(m)
    scores, value = quadratic_scores(jnp.asarray(y), jnp.asarray(weights), steps)
    np.testing.assert_allclose(scores, polynomial(m) ** 2, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(value, share @ polynomial(m) ** 2, rtol=1e-10)


def test_scores_from_moments_that_followed_falling_weights(x64):
    """The centre is then that of other weights."""
    x, weights, bad = corrupted_sample()
    root = np.random.default_rng(5).normal(size=(x.shape[1],) * 2)
    new = np.where(bad, 0.0, weights)
    for whitener in (None, root + root.T):
        moments = jax.jit(running_moments.moments_of)(x, weights, whitener)
        after = jax.jit(running_moments.follow)(moments, x, weights, new, whitener)
        np.testing.assert_array_equal(after.centre, moments.centre)
        scores, value = jax.jit(spectral.scores_from_moments)(x, after, whitener)
        expected = numpy_linear(x if whitener is None else x @ whitener, new)
        np.testing.assert_allclose(scores, expected[0], rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(value, expected[1], rtol=1e-10)


bound_of = jax.jit(spectral.quadratic_top_bound, static_argnames="miss")


def test_where_every_direction_is_taken_the_bound_is_the_top(x64):
    """Four dimensions have ten symmetric matrices, fewer than the Lanczos method makes steps."""
    y, weights, _ = corrupted_sample()
    top = numpy_quadratic(y, weights)[1]
    for seed in range(3):
        np.testing.assert_allclose(bound_of(y, weights, jax.random.key(seed)), top, rtol=1e-9)


@pytest.mark.parametrize("miss", [None, 0.01, 0.5])
def test_the_bound_is_the_top_over_one_less_the_shortfall(miss, x64):
    y, weights, _ = corrupted_sample(d=8, size=0.0)
    top = numpy_quadratic(y, weights)[1]
    found = bound_of(y, weights, jax.random.key(1), *(() if miss is None else (miss,)))
    shortfall = lanczos_shortfall(36, 0.01 if miss is None else miss)
    np.testing.assert_allclose(found, top / (1 - shortfall), rtol=1e-6)


@pytest.mark.parametrize("far", [1e2, 1e4])
def test_the_bound_is_no_more_than_the_fourth_moment(far, x64):
    """‖E‖y‖²yyᵀ‖: a single far row makes it the top itself, or nearly so."""
    y, weights, _ = corrupted_sample(d=8, size=0.0)
    y[0] = far * np.eye(8)[2]
    rows = y * np.linalg.norm(y, axis=1)[:, None]
    fourth = np.linalg.eigvalsh((rows.T * weights) @ rows / weights.sum())[-1]
    assert numpy_quadratic(y, weights)[1] > 0.99 * fourth
    np.testing.assert_allclose(bound_of(y, weights, jax.random.key(2)), fourth, rtol=1e-10)


def test_weights_of_other_rows_are_refused():
    x = jnp.ones((6, 2))
    for score in (linear_scores, quadratic_scores):
        with pytest.raises(AssertionError):
            score(x, jnp.ones(3))
        with pytest.raises(AssertionError):
            score(x[:, :1], jnp.ones((6, 1)))


@pytest.mark.slow
def test_the_bound_starts_from_a_matrix_whose_law_no_rotation_changes(monkeypatch, x64):
    """A random symmetric matrix: normal entries, of variance 1 on the diagonal and ½ off it."""
    starts = []
    monkeypatch.setattr(spectral, "top_by_lanczos", lambda apply, start: starts.append(start) or jnp.inf)
    spectral.quadratic_top_bound(jnp.ones((2, 60)), jnp.ones(2), jax.random.key(3))
    start = np.asarray(starts[0]).reshape(60, 60)
    np.testing.assert_array_equal(start, start.T)
    own, others = np.diag(start), start[np.triu_indices(60, 1)] * np.sqrt(2)
    assert scipy.stats.kstest(own, scipy.stats.norm.cdf).pvalue > 1e-3
    assert scipy.stats.kstest(others, scipy.stats.norm.cdf).pvalue > 1e-3


@pytest.mark.parametrize(("dimensions", "formed"), [(255, True), (256, True), (257, False)])
def test_a_covariance_is_formed_up_to_so_many_dimensions(dimensions, formed, no_covariance, monkeypatch):
    taken, dense = [], spectral.top_eigenpair
    monkeypatch.setattr(spectral, "top_eigenpair", lambda matrix: taken.append(matrix.shape) or dense(matrix))
    jax.eval_shape(spectral.linear_scores, jnp.ones((5, dimensions)), jnp.ones(5))
    assert taken == [(dimensions, dimensions)] * formed
