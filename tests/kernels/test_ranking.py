import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.kernels.ranking import highest_first, largest

SCORES = np.array([0.5, 2.0, -1.0, 2.0, -np.inf, 0.5], np.float32)


def test_the_highest_come_first_and_the_first_of_equals():
    """Against Python's sort, which is stable; NumPy's arrays stay NumPy's."""
    expected = sorted(range(len(SCORES)), key=lambda i: -SCORES[i])
    assert isinstance(highest_first(SCORES), np.ndarray)
    np.testing.assert_array_equal(highest_first(SCORES), expected)
    np.testing.assert_array_equal(highest_first(jnp.asarray(SCORES)), expected)


@pytest.mark.parametrize("count", range(len(SCORES) + 1))
def test_as_many_as_asked_for_are_in_the_mask(count):
    expected = np.isin(np.arange(len(SCORES)), highest_first(SCORES)[:count])
    np.testing.assert_array_equal(largest(jnp.asarray(SCORES), jnp.int32(count)), expected)


def test_counts_in_a_batch():
    found = jax.vmap(largest, (None, 0))(jnp.asarray(SCORES), jnp.arange(4))
    np.testing.assert_array_equal(found.sum(axis=1), np.arange(4))
