import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from robust_rlhf_jax.kernels.chi_square import chi_square_quantile


@pytest.mark.parametrize("degrees", [3, 10, 25, 100])
def test_quantile_against_scipy(degrees):
    expected = scipy.stats.chi2.ppf(0.9, degrees)
    np.testing.assert_allclose(chi_square_quantile(0.9, jnp.asarray(degrees)), expected, rtol=0.01)


def test_no_degree_of_freedom_counts_as_one():
    """Against Wilson & Hilferty written out at m = 1."""
    expected = (1 - 2 / 9 + scipy.stats.norm.ppf(0.9) * np.sqrt(2 / 9)) ** 3
    for degrees in (0, 1):
        np.testing.assert_allclose(chi_square_quantile(0.9, jnp.asarray(degrees)), expected, rtol=1e-5)
