"""Usual numbers of pairs: few, hardly larger, and nobody sees that rows were filled up."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robust_rlhf_jax.rewards import fit_differences, fit_with_alternative, plain_fit
from robust_rlhf_jax.rewards.coordinates import WIDE
from robust_rlhf_jax.rewards.usual_sizes import LEAST, MOST, filled, first, rows_to_fill, usual_size

from .worlds import K, normal_pairs, planted


@given(st.integers(1, 1 << 22))
def test_a_usual_size_is_no_less_and_hardly_more(n):
    size = usual_size(n)
    assert n <= size < max(1.25 * n + 1, n + (1 << (LEAST - 2)))
    assert usual_size(size) == size


def test_usual_sizes_are_few():
    assert len({usual_size(n) for n in range(1, 257)}) == 4
    assert len({usual_size(n) for n in range(257, 1 << 14)}) == 4 * 6


def test_what_is_not_filled_up():
    assert rows_to_fill(jnp.zeros((300, 3))) == 20
    assert rows_to_fill(jnp.zeros((320, 3))) == 0
    assert rows_to_fill(jnp.zeros((300, WIDE + 1))) == 0
    assert rows_to_fill(jnp.zeros((MOST + 1, 1), jnp.int8)) == 0
    assert jax.jit(lambda x: jnp.asarray(rows_to_fill(x)))(jnp.zeros((300, 3))) == 0


def test_filled_rows_stand_at_the_end():
    np.testing.assert_array_equal(filled(np.arange(3.0), 2, 7.0), [0, 1, 2, 7, 7])
    np.testing.assert_array_equal(filled(np.ones((1, 2), np.float32), 1), [[1, 1], [0, 0]])
    given = jnp.ones(3)
    assert filled(given, 0) is given
    np.testing.assert_array_equal(first(jnp.arange(8.0).reshape(2, 4), 3), [[0, 1, 2], [4, 5, 6]])


@pytest.mark.slow
def test_a_fit_of_filled_rows_is_the_fit_of_the_rows():
    """Under jit nothing is filled up."""
    x, labels, _ = planted(*normal_pairs(4, 900), 0.1, 8.0)
    raters = jnp.asarray(np.random.default_rng(0).integers(0, 50, 900))
    arrays = jnp.float32(x), jnp.float32(labels), jnp.float32(0.1), raters
    (found, other), (expected, another) = (
        f(*arrays) for f in (fit_with_alternative, jax.jit(fit_with_alternative))
    )
    for name, leaf in found._asdict().items():
        for one, two in zip(jax.tree.leaves(leaf), jax.tree.leaves(getattr(expected, name)), strict=True):
            assert one.shape == two.shape, name
            np.testing.assert_allclose(one, two, rtol=1e-2, atol=1e-2, err_msg=name)
    np.testing.assert_allclose(found.theta, expected.theta, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(other.suspicion, another.suspicion, atol=1e-2)
    assert other.exists == another.exists


@pytest.mark.slow
def test_what_is_traced_beside_x_is_not_filled():
    """At a number of pairs that is none of the usual ones."""
    x, labels = (jnp.float32(part) for part in normal_pairs(4, 300))
    levels = jnp.float32([0.05, 0.2])
    expected = [fit_differences(x, labels, level).theta for level in levels]
    for found in (
        jax.vmap(lambda level: fit_differences(x, labels, level).theta)(levels),
        [jax.jit(lambda level: fit_differences(x, labels, level).theta)(level) for level in levels],
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    plain, _ = plain_fit(x, labels)
    many, _ = jax.vmap(plain_fit, (None, 0))(x, jnp.stack([labels, -labels]))
    np.testing.assert_allclose(many, jnp.stack([plain, -plain]), rtol=1e-3, atol=1e-4)
    weighed, _ = jax.vmap(plain_fit, (None, None, 0))(x, labels, jnp.ones((2, 300)))
    np.testing.assert_allclose(weighed, jnp.stack([plain, plain]), rtol=1e-3, atol=1e-4)


@pytest.mark.slow
def test_what_was_put_on_a_device_is_not_filled():
    x, labels = (jnp.float32(part) for part in normal_pairs(4, 300))
    assert rows_to_fill(x, labels, None) == 20
    there = jax.device_put(labels, jax.devices()[0])
    assert rows_to_fill(x, there) == 0
    theta, _ = plain_fit(x, labels)
    assert not theta.committed


def test_another_number_of_pairs_compiles_nothing(count_compilations):
    """Nor does a usual one."""
    x, labels = (jnp.float32(part) for part in normal_pairs(4, 1024))
    given = {n: (x[:n], labels[:n]) for n in (900, 897, 1024)}
    plain_fit(*given[900])
    with count_compilations() as count:
        for n in (897, 1024):
            assert plain_fit(*given[n])[0].shape == (K,)
    assert count.compiled == []


@pytest.mark.parametrize("labels", [[0.0, 1.0, 1.0], [False, True, True]])
def test_labels_of_a_plain_fit_are_signs(labels):
    """A label of 0 would leave its pair out."""
    with pytest.raises(ValueError, match=r"labels\[0\] is .*: every label must be \+1 or -1"):
        plain_fit(np.ones((3, 1), np.float32), np.array(labels))
