"""Whitened coordinates: a second moment of I on the span, units and order without effect, absurd rows shortened."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slow_parameters import slow

from robust_rlhf_jax.rewards import coordinates

from .worlds import THETA, normal_pairs, rare_pairs, sparse_pairs

n, k = 200, 6
unit_free = jax.jit(coordinates.unit_free)


def pairs_of(x, labels=None, dtype=jnp.float32):
    labels = np.ones(len(x)) if labels is None else labels
    return unit_free(jnp.asarray(x, dtype), jnp.asarray(labels, dtype))


@pytest.mark.parametrize("draw", [normal_pairs, rare_pairs, sparse_pairs])
@pytest.mark.parametrize(("wide", "tolerance"), [slow(False, 1e-4), (True, 1e-11)])
def test_the_second_moment_is_the_identity(draw, wide, tolerance):
    """Of the pairs whose options differ: among sparse ones some do not."""
    x, labels = draw(n=n)
    x *= [1e-6, 1.0, 1.0, 30.0, 1e4, 1e8]
    with jax.enable_x64(wide):
        pairs = pairs_of(x, labels, jnp.float64 if wide else jnp.float32)
        z, to_theta = np.asarray(pairs.rows), np.asarray(pairs.to_theta)
        np.testing.assert_array_equal(pairs.informative, x.any(axis=1))
        np.testing.assert_allclose(z.T @ z / x.any(axis=1).sum(), np.eye(k), atol=10 * tolerance)
        np.testing.assert_allclose(labels[:, None] * (x @ to_theta), z, rtol=tolerance, atol=10 * tolerance)
        assert pairs.rank == k
        theta = to_theta @ THETA
        np.testing.assert_allclose(
            pairs.margins(jnp.asarray(THETA, z.dtype)), labels * (x @ theta), rtol=1e-2, atol=1e-3
        )


@given(st.lists(st.integers(-20, 20), min_size=k, max_size=k))
def test_powers_of_two_change_no_bit(powers):
    x, labels = rare_pairs(n=n)
    scale = 2.0 ** np.asarray(powers)
    one, other = pairs_of(x, labels), pairs_of(x * scale, labels)
    np.testing.assert_array_equal(one.rows, other.rows)
    np.testing.assert_array_equal(one.to_theta, np.asarray(other.to_theta) * scale[:, None])


def test_a_linear_map_turns_the_rows_and_nothing_else(x64):
    """The same Gram matrix zzᵀ: only the axes differ."""
    x, labels = normal_pairs(n=n)
    rng = np.random.default_rng(1)
    for change in (np.linalg.qr(rng.normal(size=(k, k)))[0], rng.normal(size=(k, k))):
        z, other = (np.asarray(pairs_of(a, labels, jnp.float64).rows) for a in (x, x @ change))
        np.testing.assert_allclose(other @ other.T, z @ z.T, atol=1e-9)


def test_null_columns_have_no_axis():
    x, _ = normal_pairs(n=n)
    x[:, 0] = 0.0
    x[:, 5] = -3.0 * x[:, 4]
    pairs = pairs_of(x)
    assert pairs.rank == 4
    assert np.sum(np.abs(pairs.rows).max(axis=0) > 0) == 4
    np.testing.assert_array_equal(pairs.to_theta[0], 0.0)
    assert pairs_of(np.zeros((n, k))).rank == 0
    assert np.isfinite(pairs_of(np.zeros((n, k))).rows).all()


def test_a_constant_column_is_a_direction():
    x, _ = normal_pairs(n=n)
    x[:, 3] = 7.0
    assert pairs_of(x).rank == k


@pytest.mark.parametrize("row", [0, 7])
def test_one_pair_alone_keeps_its_direction(row):
    x, _ = normal_pairs(n=n)
    x[:, 5] = 0.0
    x[row, 5] = 1e-3
    pairs = pairs_of(x)
    assert pairs.rank == k
    # A second moment of 1 that one row carries.
    np.testing.assert_allclose(np.linalg.norm(pairs.rows[row]) ** 2, n, rtol=0.1)


@pytest.mark.parametrize("size", [1e6, 1e10, 1e30, 1e38, 3.4e38])
def test_an_absurd_row_is_shortened_in_its_direction(size):
    x, labels = normal_pairs(n=n)
    clean = pairs_of(x, labels)
    x[7, 2] = size
    pairs = pairs_of(x, labels)
    z = np.asarray(pairs.rows, np.float64)
    assert np.isfinite(pairs.rows).all()
    assert np.isfinite(pairs.to_theta).all()
    assert pairs.rank == k
    others = np.arange(n) != 7
    # The others keep their geometry, up to one row that counts as ten typical ones.
    ratio = np.linalg.norm(z[others], axis=1) / np.linalg.norm(np.asarray(clean.rows)[others], axis=1)
    assert 0.4 < ratio.min() <= ratio.max() < 1.2
    assert 1e2 < np.linalg.norm(z[7]) < 1e5
    direction = np.asarray(pairs.to_theta, np.float64)[2]
    np.testing.assert_allclose(z[7] / np.linalg.norm(z[7]), direction / np.linalg.norm(direction), atol=1e-3)


def test_a_far_row_counts_in_the_whitening_as_one_of_ten_typical_lengths(x64):
    """Rows along one axis each, of length 1 but for two: of 9 and of 40 typical lengths."""
    axis = np.arange(n) % k
    x = np.eye(k)[axis]
    x[3] *= 9.0
    x[8] *= 40.0
    weights = np.where(np.arange(n) == 8, (10.0 / 40.0) ** 2, 1.0)
    length = np.linalg.norm(x, axis=1)
    moment = np.array([np.sum((weights * length**2)[axis == a]) for a in range(k)]) / weights.sum()
    pairs = pairs_of(x, dtype=jnp.float64)
    np.testing.assert_allclose(np.linalg.norm(pairs.rows, axis=1), length / np.sqrt(moment[axis]), rtol=1e-10)


def test_the_way_back_from_theta_is_the_inverse(x64):
    x, labels = rare_pairs(n=n)
    pairs = pairs_of(x * [1e-6, 1.0, 1.0, 30.0, 1e4, 1e8], labels, jnp.float64)
    np.testing.assert_allclose(pairs.from_theta @ pairs.to_theta, np.eye(k), atol=1e-10)


def test_swapped_pairs_are_the_same_pairs():
    x, labels = normal_pairs(n=n)
    flips = np.random.default_rng(3).choice([-1.0, 1.0], n)
    one, other = pairs_of(x, labels), pairs_of(flips[:, None] * x, flips * labels)
    jax.tree.map(np.testing.assert_array_equal, one, other)


def test_the_penalty_is_the_length_of_each_axis_in_standardised_columns(x64):
    """Σ_j p_j t_j² ∝ the squared length of θ in columns of root mean square 1; mean 1 on the span."""
    x, labels = rare_pairs(n=n)
    x = x * [1e-6, 1.0, 1.0, 30.0, 1e4, 1e8] + 0.5 * x[:, [1, 0, 2, 3, 4, 5]]
    pairs = pairs_of(x, labels, jnp.float64)
    squares = np.sum((np.asarray(pairs.to_theta) * np.sqrt(np.mean(x**2, axis=0))[:, None]) ** 2, axis=0)
    np.testing.assert_allclose(np.mean(pairs.penalty), 1.0, rtol=1e-9)
    np.testing.assert_allclose(pairs.penalty, squares / squares.mean(), rtol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_not_mended(bad):
    x, labels = normal_pairs(n=n)
    x[7, 2] = bad
    assert not np.isfinite(pairs_of(x, labels).rows).all()
