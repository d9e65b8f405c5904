"""Sorting floats by their bits against NumPy: every sign, tie, infinity, NaN and dtype."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robust_rlhf_jax.kernels.sorting import ascending, median_of_positive

sort = jax.jit(ascending)
middle = jax.jit(median_of_positive)
N = 9
floats = st.lists(st.floats(width=32, allow_subnormal=False), min_size=N, max_size=N)


@given(values=floats)
def test_every_float_is_sorted_as_by_numpy(values):
    x = np.array(values, np.float32)
    np.testing.assert_array_equal(np.asarray(sort(jnp.asarray(x))), np.sort(x))


@given(values=st.lists(st.floats(0, 2.0**99, width=32, allow_subnormal=False), min_size=N, max_size=N))
def test_the_median_of_positive_sizes_is_that_of_numpy(values):
    x = np.array(values, np.float32)
    expected = np.median(x[x > 0]) if (x > 0).any() else 0.0
    np.testing.assert_allclose(np.asarray(middle(jnp.asarray(x))), expected, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("wide", [False, True])
def test_rows_are_sorted_for_themselves(wide):
    with jax.enable_x64(wide):
        x = np.random.default_rng(0).normal(size=(3, 10)).astype(float if wide else np.float32)
        found = ascending(jnp.asarray(x))
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(found), np.sort(x, axis=1))
        np.testing.assert_array_equal(np.asarray(jax.vmap(ascending)(jnp.asarray(x))), np.sort(x, axis=1))
        sizes = np.abs(x)
        medians = jax.vmap(median_of_positive)(jnp.asarray(sizes))
        np.testing.assert_allclose(np.asarray(medians), np.median(sizes, axis=1), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_nan_of_either_sign_comes_last_and_makes_the_median_one(sign):
    nan = np.copysign(np.float32(np.nan), np.float32(sign))
    found = np.asarray(ascending(jnp.asarray([2.0, nan, -jnp.inf, jnp.inf])))
    np.testing.assert_array_equal(found, [-np.inf, 2.0, np.inf, np.nan])
    assert np.isnan(np.asarray(median_of_positive(jnp.asarray([2.0, nan, 1.0]))))


def test_a_single_value_is_its_own_median():
    assert float(median_of_positive(jnp.asarray([3.0]))) == 3.0
