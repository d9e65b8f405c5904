"""The span of rows whose directions differ much in size: what a Gram matrix's rounding must not hide."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.moments.span import row_span

span_of = jax.jit(row_span)


def rows(condition, shape=(300, 6), rank=6, seed=0):
    """Rows whose singular values fall from 1 to 1/condition, `rank` of them, in a random basis."""
    rng = np.random.default_rng(seed)
    left = np.linalg.qr(rng.normal(size=(shape[0], rank)))[0]
    right = np.linalg.qr(rng.normal(size=(shape[1], rank)))[0]
    return left * np.geomspace(1.0, 1.0 / condition, rank) @ right.T


@pytest.mark.parametrize(("wide", "condition"), [(False, 3e2), (False, 1e4), (True, 1e4), (True, 1e11)])
@pytest.mark.parametrize(("shape", "rank"), [((300, 6), 6), ((300, 6), 5), ((12, 40), 12), ((40, 12), 8)])
def test_a_direction_is_kept_down_to_the_precision(wide, condition, shape, rank):
    x = rows(condition, shape, rank)
    weights = np.random.default_rng(1).uniform(0.5, 1.0, shape[0])
    with jax.enable_x64(wide):
        span = span_of(jnp.asarray(x), jnp.asarray(weights))
        x = np.asarray(jnp.asarray(x), np.float64)  # the rows as the precision holds them
        eps = float(jnp.finfo(span.axes.dtype).eps)
        lengths = np.asarray(span.lengths(jnp.asarray(x)), np.float64)
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
