"""What rounding hides of a mean, in its own precision."""

import jax.numpy as jnp
import numpy as np

from robust_rlhf_jax.kernels.rounding import rounding_of


def test_it_is_four_errors_of_one_and_the_value(x64):
    for dtype in (np.float32, np.float64):
        found = rounding_of(jnp.asarray([0.0, -3.0, 7.0], dtype))
        assert found.dtype == dtype
        np.testing.assert_allclose(found, 4 * np.finfo(dtype).eps * np.array([1.0, 4.0, 8.0]), rtol=1e-6)
