"""Divisors: what is positive stays to the bit, anything else gives way to 1."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.kernels.divisors import positive_or_one


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_only_what_is_positive_divides(dtype, x64):
    tiny = np.finfo(dtype).tiny
    x = jnp.asarray([0.0, -0.0, -2.0, tiny, 0.3, 7.0, np.inf], dtype)
    found = positive_or_one(x)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, np.asarray([1.0, 1.0, 1.0, tiny, 0.3, 7.0, np.inf], dtype))


def test_a_vector_of_zeros_has_a_direction_and_a_gradient_without_nan():
    def scaled(v):
        return jnp.sum(v / positive_or_one(jnp.max(jnp.abs(v))))

    assert np.all(np.isfinite(jax.grad(scaled)(jnp.zeros(3))))
