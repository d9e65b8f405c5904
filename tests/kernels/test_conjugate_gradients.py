"""Conjugate gradients against NumPy's solve; a row that is not finite, or zero, leaves the others as they were."""

import jax
import jax.numpy as jnp
import numpy as np

from robust_rlhf_jax.kernels.conjugate_gradients import conjugate_gradients
from robust_rlhf_jax.kernels.linalg import matmul

d = 40


def problem():
    """(H, diag(H), four right-hand sides): axes of very different sizes, coupled."""
    rng = np.random.default_rng(0)
    size = np.geomspace(0.1, 100.0, d)
    h = size[:, None] * (np.eye(d) + np.cov(rng.normal(size=(d, 200)))) * size
    return h, np.diag(h), rng.normal(size=(4, d)) * size


@jax.jit
def solve(h, diagonal, right):
    return conjugate_gradients(lambda v: matmul(v, h), diagonal, right, 1e-6)


def test_equals_a_direct_solution(x64):
    h, diagonal, right = problem()
    expected = np.linalg.solve(h, right.T).T
    found = solve(*map(jnp.asarray, (h, diagonal, right)))
    np.testing.assert_allclose(found * np.sqrt(diagonal), expected * np.sqrt(diagonal), atol=1e-5)


def test_rows_that_are_zero_or_not_finite_leave_the_others():
    h, diagonal, right = (np.asarray(part, np.float32) for part in problem())
    clean = solve(h, diagonal, right)
    right[1], right[2, 3] = 0.0, np.nan
    found = solve(h, diagonal, right)
    np.testing.assert_array_equal(found[1], 0.0)
    assert not np.isfinite(found[2]).all()
    np.testing.assert_allclose(found[::3], clean[::3], rtol=1e-4, atol=1e-6)
