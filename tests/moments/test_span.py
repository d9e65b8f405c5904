"""The span of rows whose directions differ much in size: what a Gram matrix's rounding must not hide."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from slow_parameters import slow

from robust_rlhf_jax.kernels import units
from robust_rlhf_jax.moments import scaled_span as scaled_spans
from robust_rlhf_jax.moments import span as span_module
from robust_rlhf_jax.moments.span import row_span

span_of = jax.jit(row_span)
scaled_span, typical_share = jax.jit(scaled_spans.scaled_span), jax.jit(scaled_spans.typical_share)
projector = jax.jit(scaled_spans.ScaledSpan.projector)
lengths_in = jax.jit(span_module.RowSpan.lengths)
whiten, project = jax.jit(span_module.RowSpan.whiten), jax.jit(span_module.RowSpan.project)


def rows(condition, shape=(300, 6), rank=6, seed=0):
    """Rows whose singular values fall from 1 to 1/condition, `rank` of them, in a random basis."""
    rng = np.random.default_rng(seed)
    left = np.linalg.qr(rng.normal(size=(shape[0], rank)))[0]
    right = np.linalg.qr(rng.normal(size=(shape[1], rank)))[0]
    return left * np.geomspace(1.0, 1.0 / condition, rank) @ right.T


@pytest.mark.parametrize(("wide", "condition"), [(False, 3e2), (False, 1e4), (True, 1e4), (True, 1e11)])
@pytest.mark.parametrize(("shape", "rank"), [((300, 6), 6), ((300, 6), 5), ((12, 40), 12), slow((40, 12), 8)])
def test_a_direction_is_kept_down_to_the_precision(wide, condition, shape, rank):
    x = rows(condition, shape, rank)
    weights = np.random.default_rng(1).uniform(0.5, 1.0, shape[0])
    with jax.enable_x64(wide):
        span = span_of(jnp.asarray(x), jnp.asarray(weights))
        x = np.asarray(jnp.asarray(x), np.float64)  # the rows as the precision holds them
        eps = float(jnp.finfo(span.axes.dtype).eps)
        lengths = np.asarray(lengths_in(span, jnp.asarray(x)), np.float64)
    assert span.rank == rank
    axes = np.asarray(span.axes, np.float64)[:, np.asarray(span.variances) > 0]
    np.testing.assert_allclose(axes.T @ axes, np.eye(rank), atol=30 * eps**0.5)
    singular = np.linalg.svd(x * np.sqrt(weights / weights.sum())[:, None], compute_uv=False)[:rank]
    deviations = np.sqrt(np.sort(np.asarray(span.variances, np.float64))[::-1][:rank])
    np.testing.assert_allclose(deviations, singular, rtol=30 * max(eps * condition, eps**0.5), atol=0)
    # Whitened lengths are leverages, which sum to the rank.
    np.testing.assert_allclose(
        weights @ lengths**2 / weights.sum(), rank, rtol=30 * max(eps * condition, eps**0.5)
    )


@pytest.mark.parametrize(("wide", "condition"), [slow(False, 3e2), (True, 1e8)])
@pytest.mark.parametrize(("shape", "rank"), [((300, 140), 140), ((300, 140), 130), ((140, 300), 139)])
def test_many_directions_are_kept_down_to_the_precision(wide, condition, shape, rank):
    test_a_direction_is_kept_down_to_the_precision(wide, condition, shape, rank)


@pytest.mark.parametrize("wide", [False, True])
def test_rounding_is_no_direction(wide):
    """A copy of a column and a difference of two, rounded to the precision of the rows."""
    for seed in range(20):
        x = np.random.default_rng(seed).normal(size=(300, 6))
        x[:, 4], x[:, 5] = x[:, 0], x[:, 1] - 2.0 * x[:, 2]
        with jax.enable_x64(wide):
            assert span_of(jnp.asarray(x), jnp.ones(300)).rank == 4


def test_no_rows_have_no_span():
    span = span_of(jnp.zeros((5, 3)), jnp.ones(5))
    assert span.rank == 0
    np.testing.assert_array_equal(span.variances, 0.0)
    np.testing.assert_array_equal(span.axes, 0.0)


@pytest.mark.parametrize(("shape", "rank"), [((300, 6), 4), ((12, 40), 12), ((40, 12), 8)])
@pytest.mark.parametrize("condition", [10.0, 1e10])
def test_axes_ascend_and_whiten_and_project(shape, rank, condition, x64):
    x = rows(condition, shape, rank)
    weights = np.random.default_rng(1).uniform(0.5, 1.0, shape[0])
    span = span_of(jnp.asarray(x), jnp.asarray(weights))
    variances, axes = np.asarray(span.variances), np.asarray(span.axes)
    assert span.rank == rank
    assert axes.shape == (shape[1], min(shape))
    np.testing.assert_array_equal(variances[:-rank], 0.0)
    np.testing.assert_array_equal(axes[:, :-rank], 0.0)
    assert (np.diff(variances) > 0).sum() >= rank - 1
    assert (np.diff(variances) >= 0).all()
    y = np.asarray(whiten(span, jnp.asarray(x)))
    white = np.diag((variances > 0).astype(float))
    # Rounding of the rows alone moves their whitened coordinates by the unit roundoff times the condition.
    rounding = 4 * np.finfo(float).eps * condition + 1e-9
    np.testing.assert_allclose((y.T * weights) @ y / weights.sum(), white, atol=rounding)
    points = np.random.default_rng(2).normal(size=(5, shape[1]))
    closest = points @ np.linalg.pinv(x, rcond=1e-13) @ x
    np.testing.assert_allclose(project(span, jnp.asarray(points)), closest, atol=1e-5)


def test_a_direction_just_above_the_tolerance_is_kept(x64):
    """8·min(n, k)·eps of the largest deviation: rounding below, a direction above."""
    least = 8 * 3 * np.finfo(float).eps
    for share, rank in ((0.9, 2), (1.1, 3)):
        x = jnp.diag(jnp.asarray([1.0, 0.5, share * least]))
        assert span_of(x, jnp.ones(3)).rank == rank


def scaled(deficient=False):
    """(rows in units far apart, weights, their ScaledSpan at ε = .1); the last column repeats the first two or not."""
    rng = np.random.default_rng(4)
    x, weights = rng.standard_t(4, (80, 4)), rng.uniform(0.2, 1.0, 80)
    if deficient:
        x[:, 2:] = x[:, :2] @ np.array([[1.0, 0.5], [1.0, -2.0]])
    x = x * [1e-6, 1.0, 1e5, 3.0]
    return x, weights, scaled_span(jnp.asarray(x), jnp.asarray(weights), 0.1)


@pytest.mark.slow
@pytest.mark.parametrize("deficient", [False, True])
def test_a_scaled_span_is_that_of_the_rows_under_their_shares(deficient, x64):
    x, weights, found = scaled(deficient)
    shares = weights * np.asarray(typical_share(jnp.asarray(x / np.asarray(found.size)), 0.1))
    sigma = (x.T * shares) @ x / shares.sum()
    np.testing.assert_allclose(found.column_size, np.sqrt(np.diag(sigma)), rtol=1e-10)
    assert found.rank == (2 if deficient else 4)
    unit = np.sqrt(np.diag(sigma))
    inverse = np.linalg.pinv(sigma / unit / unit[:, None], rcond=1e-10) / unit / unit[:, None]
    lengths = np.sqrt(np.einsum("ni,ij,nj->n", x, inverse, x))
    np.testing.assert_allclose(found.lengths(jnp.asarray(x)), lengths, rtol=1e-8)


def test_the_projector_to_every_direction_is_exactly_one(x64):
    np.testing.assert_array_equal(projector(scaled()[2]), np.eye(4))


def test_the_projector_is_that_to_the_rows_in_their_own_units(x64):
    x, _, found = scaled(deficient=True)
    basis = np.linalg.qr(
        np.linalg.svd(x / np.asarray(found.size))[2][:2].T * np.asarray(found.size)[:, None]
    )[0]
    np.testing.assert_allclose(projector(found), basis @ basis.T, atol=1e-9)


def test_a_column_of_zeros_has_size_one_and_no_direction(x64):
    x = np.random.default_rng(5).normal(size=(30, 3)) * [1.0, 0.0, 4.0]
    found = scaled_span(jnp.asarray(x), jnp.ones(30))
    assert found.column_size[1] == 1.0
    np.testing.assert_allclose(projector(found), np.diag([1.0, 0.0, 1.0]), atol=1e-12)


def test_no_row_counts_more_than_the_typical_one(x64):
    """min(1, 1/ℓ²), ℓ in typical entries, of which ε leaves out the smallest."""
    x = jnp.asarray([[0.5], [1.0], [1.0], [2.0], [4.0]])
    np.testing.assert_allclose(typical_share(x), [1.0, 1.0, 1.0, 0.25, 1 / 16], rtol=1e-12)
    sparse = np.random.default_rng(6).normal(size=(40, 2))
    sparse[:20, 1] = 0.0
    sparse[:4, 1] = 1e-3
    for epsilon in (0.0, 0.1):
        lengths = jax.jit(units.unit_free_lengths)(sparse, epsilon)
        np.testing.assert_allclose(
            typical_share(jnp.asarray(sparse), epsilon), 1 / np.maximum(1.0, lengths) ** 2, rtol=1e-12
        )


@pytest.mark.slow
def test_no_row_is_suspect_unless_epsilon_says_so(x64):
    x, weights, _ = scaled()
    x[:30, 1], x[:3, 1] = 0.0, 1e-9
    args = jnp.asarray(x), jnp.asarray(weights)
    np.testing.assert_array_equal(scaled_span(*args).column_size, scaled_span(*args, 0.0).column_size)
    np.testing.assert_array_equal(typical_share(args[0]), typical_share(args[0], 0.0))
    assert not np.array_equal(typical_share(args[0]), typical_share(args[0], 0.3))


def test_fewer_rows_than_columns_are_projected_to_their_span(x64):
    x = np.random.default_rng(7).normal(size=(3, 5)) * [1.0, 1e-3, 1e3, 2.0, 1.0]
    found = scaled_span(jnp.asarray(x), jnp.ones(3))
    assert found.rank == 3
    np.testing.assert_allclose(projector(found), np.linalg.pinv(x) @ x, atol=1e-8)


@pytest.mark.parametrize("hidden", [span_module.HIDDEN, -1.0])
@pytest.mark.parametrize("shape", [(300, 140), slow((140, 300))])
def test_far_rows_hide_no_direction_of_the_others(shape, hidden, monkeypatch):
    """One direction a thousand times as long: the first Gram matrix has no digit for the others, the second has,
    whether the direction is `hidden` from an iteration or found by a decomposition.
    """
    monkeypatch.setattr(span_module, "HIDDEN", hidden)
    found = jax.jit(lambda x: row_span(x, jnp.ones(len(x))))
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.normal(size=(size, 140)))[0] for size in shape)
    for null in (0, 30):
        values = np.r_[1e3, np.ones(139 - null), np.zeros(null)]
        x = np.asarray(left * values @ right.T, np.float32)
        span = found(jnp.asarray(x))
        assert span.rank == 140 - null
        axes = np.asarray(span.axes, np.float64)[:, np.asarray(span.variances) > 0]
        np.testing.assert_allclose(axes.T @ axes, np.eye(140 - null), atol=1e-5)
        exact = np.linalg.svd(x.astype(float), full_matrices=False)[0][:, : 140 - null]
        leverages = np.asarray(lengths_in(span, jnp.asarray(x)), np.float64) ** 2 / len(x)
        np.testing.assert_allclose(leverages, np.sum(exact**2, axis=1), atol=1e-4)


@pytest.mark.parametrize("shown", [1, 5, 140])
def test_the_size_along_many_directions_is_measured_to_its_own_error(shown):
    """One standard error of the square is √(2/64) where one direction is shown, less where more are."""
    rng = np.random.default_rng(1)
    x, axes = rng.normal(size=(200, 140)), np.linalg.qr(rng.normal(size=(140, 140)))[0]
    axes[:, shown:] = 0.0
    found = jax.jit(span_module.size_along)(jnp.asarray(x, jnp.float32), jnp.asarray(axes, jnp.float32))
    exact = np.linalg.norm(x @ axes)
    assert abs(float(found) ** 2 / exact**2 - 1.0) < 5 * np.sqrt(2.0 / span_module.SIGNS)
    # Of few directions it is the norm itself.
    few = span_module.size_along(jnp.asarray(x[:, :9], jnp.float32), jnp.eye(9))
    np.testing.assert_allclose(few, np.linalg.norm(x[:, :9]), rtol=1e-6)


@pytest.mark.parametrize(("far", "hide"), [([], False), ([300.0], True), ([300.0, 150.0, 100.0], True)])
def test_far_directions_are_found_by_iteration(far, hide):
    """They hide the others where these are below the precision of a Gram matrix, and only then."""
    rng = np.random.default_rng(2)
    x = (rng.normal(size=(900, 150)) / 30.0).astype(np.float32)
    axes = np.linalg.qr(rng.normal(size=(150, 150)))[0][:, : len(far)]
    x[: len(far)] += np.asarray(far, np.float32)[:, None] * axes.T
    tall = span_module._tall(jnp.asarray(x), False)
    leading, found = jax.jit(span_module._leading_by_iteration)(tall)
    assert found == hide
    if hide:
        _, exact, right = np.linalg.svd(x.astype(float), full_matrices=False)
        sharp = np.asarray(leading.deviations) > 0
        assert sharp.sum() == len(far)
        np.testing.assert_allclose(np.asarray(leading.deviations)[sharp][::-1], exact[: len(far)], rtol=1e-5)
        shown = np.abs(right[: len(far)] @ np.asarray(leading.vectors)[:, sharp][:, ::-1])
        np.testing.assert_allclose(shown, np.eye(len(far)), atol=1e-3)
