import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.kernels.ranking import highest_first, largest, largest_to_rounding

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


@pytest.mark.parametrize("count", range(len(SCORES) + 1))
def test_scores_that_differ_by_rounding_go_by_position(count):
    """The last units of equal scores change no mask; a difference above rounding does."""
    nudged = SCORES + np.array([0, 0, 0, 4, 0, 4], np.float32) * np.float32(1.2e-7)
    expected = largest(jnp.asarray(SCORES), jnp.int32(count))
    np.testing.assert_array_equal(largest_to_rounding(jnp.asarray(nudged), jnp.int32(count)), expected)


def test_scores_that_differ_by_more_than_rounding_go_by_size():
    scores = jnp.asarray(SCORES).at[3].add(1e-5)
    np.testing.assert_array_equal(np.flatnonzero(largest_to_rounding(scores, jnp.int32(1))), [3])
