"""How rows are described, with and without their moment."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from slow_parameters import slow

from robust_rlhf_jax.likelihood.geometry import dense_geometry, wide_geometry
from robust_rlhf_jax.likelihood.logistic_regression import SAMPLED_ROWS, STRIDE
from robust_rlhf_jax.moments.scaled_span import typical_share

describe_wide = jax.jit(wide_geometry, static_argnums=4)


@pytest.mark.slow
@pytest.mark.parametrize("whiten", [True, False])
def test_far_rows_count_in_a_wide_description_as_typical_ones(whiten, x64):
    rng = np.random.default_rng(1)
    x, weights = rng.normal(size=(60, 4)), rng.uniform(0.2, 1.0, 60)
    x[:3] *= 100.0
    found = describe_wide(jnp.asarray(x), jnp.asarray(weights), 0.0, jnp.zeros((1, 4)), whiten)
    share = weights * typical_share(jnp.asarray(x))
    assert np.asarray(share / weights)[:3].max() < 1e-3
    np.testing.assert_allclose(found.row_size**2, np.average(np.sum(x**2, axis=1), weights=share), rtol=1e-9)
    if whiten:
        moment = (x.T * share) @ x / share.sum()
        lengths = np.sqrt(np.sum(x @ np.linalg.inv(moment) * x, axis=1))
        np.testing.assert_allclose(found.lengths, lengths, rtol=1e-7)


@pytest.mark.slow
def test_a_sample_of_the_rows_gives_the_moment_unless_it_misses_a_column(x64):
    """Or the lengths of all rows are asked for, which takes the exact one."""
    n = 2 * SAMPLED_ROWS * STRIDE
    x, weights = np.random.default_rng(0).normal(size=(n, 2)), np.random.default_rng(1).uniform(0.5, 1.0, n)
    missed = x.copy()
    missed[::STRIDE, 1] = 0.0
    describe = jax.jit(dense_geometry, static_argnums=4)

    def moment(rows, w):
        return (rows.T * w) @ rows / w.sum()

    for rows, whiten, expected in (
        (x, False, moment(x[::STRIDE], weights[::STRIDE])),
        (x, True, moment(x, weights)),
        (missed, False, moment(missed, weights)),
    ):
        found = describe(jnp.asarray(rows), jnp.asarray(weights), 0.0, jnp.zeros((1, 2)), whiten)
        np.testing.assert_allclose(found.moment, expected, rtol=1e-9)
        assert found.rank == 2


@pytest.mark.parametrize("describe", [dense_geometry, wide_geometry])
@pytest.mark.parametrize("whiten", [True, slow(False)])
def test_rows_are_described_alike_with_and_without_a_moment(describe, whiten, x64):
    """Beside NumPy, rows of one length: root mean square, rank, Mahalanobis lengths, the projector or the projected."""
    rng = np.random.default_rng(0)
    signs, weights, starts = (
        rng.choice([-1.0, 1.0], (60, 3)),
        rng.uniform(0.2, 1.0, 60),
        rng.normal(size=(2, 4)),
    )
    x = np.column_stack([signs, -2.0 * signs[:, 0]]) * 3.0
    found = jax.jit(describe, static_argnums=4)(x, weights, 0.0, starts, whiten)
    np.testing.assert_allclose(
        found.row_size**2, np.average(np.sum(x**2, axis=1), weights=weights), rtol=1e-9
    )
    assert found.rank == 3
    moment = (x.T * weights) @ x / weights.sum()
    if whiten:
        lengths = np.sqrt(np.sum(x @ np.linalg.pinv(moment, rcond=1e-9) * x, axis=1))
        np.testing.assert_allclose(found.lengths, lengths, rtol=1e-6)
    else:
        assert found.lengths is None
    onto = np.linalg.pinv(x) @ x
    if found.projector is None:
        np.testing.assert_allclose(found.starts, starts @ onto, atol=1e-9)
    else:
        np.testing.assert_allclose(found.projector, onto, atol=1e-9)
        np.testing.assert_allclose(found.moment, moment, rtol=1e-9)
