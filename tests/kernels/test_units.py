"""Typical sizes: powers of two near a median, which far, tiny and missing entries cannot move."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.kernels import units

powers, medians = jax.jit(units.typical_powers), jax.jit(units.column_medians)
relative, unit_free = jax.jit(units.relative_lengths), jax.jit(units.unit_free_lengths)
typical, honest_size = jax.jit(units.typical_entries), jax.jit(units.honest_size)


@pytest.mark.parametrize("wide", [False, True])
def test_powers_of_two_at_the_median(wide):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(101, 5)) * 10.0 ** np.array([-30, -8, 0, 8, 30])
    x[rng.uniform(size=x.shape) < 0.3] = 0.0
    x[:, 2] = 0.0
    with jax.enable_x64(wide):
        found = np.asarray(powers(jnp.asarray(x)), float)
    for j in (0, 1, 3, 4):
        size = np.sort(np.abs(x[x[:, j] != 0, j]))[::-1]
        expected = 2.0 ** np.floor(np.log2(size[int(np.ceil(len(size) / 2)) - 1]))
        assert found[j] == expected
    assert found[2] == 1.0


def test_less_than_half_of_the_entries_move_nothing_out_of_range():
    x = np.random.default_rng(1).normal(size=(100, 3)).astype(np.float32) * 1e-8
    clean = np.asarray(powers(x))
    x[:45] = 3e38
    size = powers(x)
    assert (clean <= size).all()
    assert (size <= 16 * clean).all()
    rows = jax.jit(units.in_units)(x, size)
    np.testing.assert_array_equal(rows[45:], x[45:] / np.asarray(size))
    assert (np.asarray(relative(rows))[45:] < 4).all()
    short = units.shortened(rows, relative(rows))
    np.testing.assert_array_equal(short[45:], rows[45:])
    np.testing.assert_allclose(relative(short)[:45], units.LONGEST, rtol=0.01)


def test_what_is_not_finite_becomes_nan():
    x = jnp.array([[1.0, jnp.inf], [-jnp.inf, jnp.nan], [1e30, 0.0]])
    found = units.in_units(x, jnp.array([1e-20, 1.0]))
    np.testing.assert_array_equal(np.isnan(found), [[False, True], [True, True], [False, False]])


@pytest.mark.parametrize("exponent", [-100, 0, 60])
def test_a_power_of_two_as_unit_changes_no_bit(exponent):
    x = np.random.default_rng(2).normal(size=(64, 4)).astype(np.float32)
    np.testing.assert_array_equal(
        powers(x * np.float32(2.0) ** exponent), powers(x) * np.float32(2.0) ** exponent
    )
    np.testing.assert_array_equal(relative(x * np.float32(2.0) ** exponent), relative(x))


def test_medians_of_columns():
    x = np.random.default_rng(3).normal(size=(51, 4)).astype(np.float32) + 1e6
    np.testing.assert_array_equal(medians(x), np.median(x, axis=0))


@pytest.mark.slow
def test_small_lies_do_not_make_honest_entries_look_large():
    """A column that is 0 in most honest rows, and next to 0 in the lies of a tenth of all rows."""
    x = np.random.default_rng(4).normal(size=(1000, 3))
    x[:, 2] *= np.random.default_rng(5).uniform(size=1000) < 0.06
    honest = units.unit_free_lengths(jnp.asarray(x, jnp.float32), 0.1)
    lies = np.arange(1000) < 100
    x[lies, 2] = 1e-4
    found = units.unit_free_lengths(jnp.asarray(x, jnp.float32), 0.1)
    assert np.max(found) < 10
    assert np.max(honest) < 10
    assert np.max(units.unit_free_lengths(jnp.asarray(x, jnp.float32))) > 100


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_power_of_two_in_the_range_is_its_own_typical_size(dtype, x64):
    """From the smallest normal number to a quarter of the largest power, in columns of a single entry."""
    info = np.finfo(dtype)
    exact = np.ldexp(np.ones((), dtype), np.arange(info.minexp, info.maxexp - 1))
    np.testing.assert_array_equal(powers(exact[None]), exact)
    np.testing.assert_array_equal(powers(-1.99 * exact[None].astype(dtype)), exact)


def test_the_typical_size_is_that_of_the_upper_median():
    x = jnp.asarray([[1.0, 1.0], [2.0, 0.0], [4.0, 0.0], [8.0, 16.0]])
    np.testing.assert_array_equal(powers(x), [4.0, 16.0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_entries_in_units_end_short_of_the_largest_float(dtype, x64):
    most = float(np.finfo(dtype).max) * 2.0**-10
    x = jnp.asarray([[1e30, -1e30, 0.5 * most, 3.0]], dtype)
    size = jnp.asarray(
        [2.0**-1000, 2.0**-1000, 1.0, 2.0] if dtype == np.float64 else [1e-20, 1e-20, 1.0, 2.0], dtype
    )
    np.testing.assert_array_equal(
        units.in_units(x, size), np.asarray([[most, -most, 0.5 * most, 1.5]], dtype)
    )


def upper_median(values):
    """The largest of the values that at least half of them reach; 1 where there is none."""
    values = np.sort(values)[::-1]
    return values[int(np.ceil(len(values) / 2)) - 1] if len(values) else 1.0


@pytest.mark.parametrize("n", [8, 9])
def test_relative_lengths_are_those_over_the_upper_median_of_rows_that_are_not_zero(n):
    x = np.random.default_rng(6).normal(size=(n, 3)).astype(np.float32)
    x[:3] = 0.0
    lengths = np.linalg.norm(x, axis=1)
    np.testing.assert_allclose(relative(x), lengths / upper_median(lengths[3:]), rtol=1e-6)


@pytest.mark.parametrize(("share", "honest"), [(0, 1.0), (29, 1.0), (31, 1e6), (49, 1e6), (50, 1e6)])
def test_where_many_sizes_are_a_million_times_as_large_the_others_are_rounding(share, honest):
    """Of 100 sizes, 0 aside; a hundred thousand times is no rounding."""
    size = np.concatenate([np.full(share, 1e6), np.ones(100 - share), np.zeros(20)]).astype(np.float32)
    assert honest_size(jnp.asarray(size)) == honest
    if share < 50:
        assert honest_size(jnp.asarray(np.minimum(size, 1e5))) == 1.0


def test_no_size_is_too_large_to_be_compared():
    size = jnp.asarray([1e30, 1e30, 1.0, 1.0, 1.0], jnp.float32)
    assert honest_size(size) == jnp.float32(1e30)


def test_lengths_whose_squares_no_float_holds():
    x = jnp.asarray([[3.0, 4.0], [0.0, 1.0], [-6.0, 8.0]])
    for unit in (1e30, 1e-30):
        np.testing.assert_allclose(relative(unit * x), [1.0, 0.2, 2.0], rtol=1e-6)
    np.testing.assert_array_equal(relative(jnp.zeros((3, 2))), 0.0)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.2, 0.9])
def test_typical_entries_leave_out_the_smallest(epsilon):
    """The upper median of what is left of the entries that are not 0 without the εn smallest; the largest of few."""
    x = np.random.default_rng(7).normal(size=(20, 4)).astype(np.float32)
    x[:9, 1], x[:, 2], x[1:, 3] = 0.0, 0.0, 0.0
    found = typical(x, epsilon)
    for j in range(4):
        size = np.sort(np.abs(x[x[:, j] != 0, j]))
        left = size[round(20 * epsilon) :]
        expected = upper_median(left) if len(left) else size[-1] if len(size) else 1.0
        assert found[j] == np.float32(expected)


def test_nothing_is_left_out_unless_asked_for():
    x = jnp.asarray(np.random.default_rng(8).normal(size=(20, 4)), jnp.float32)
    np.testing.assert_array_equal(typical(x), typical(x, 0.0))
    np.testing.assert_array_equal(unit_free(x), unit_free(x, 0.0))


def test_unit_free_lengths_are_those_in_typical_entries():
    x = np.random.default_rng(9).normal(size=(51, 3)).astype(np.float32)
    plain = unit_free(x, 0.1)
    np.testing.assert_allclose(plain, relative(x / np.asarray(typical(x, 0.1))), rtol=1e-6)
    np.testing.assert_allclose(unit_free(x * np.float32([1e-8, 3.0, 1e12]), 0.1), plain, rtol=1e-5)


def test_rows_are_shortened_to_the_longest_and_no_further():
    x = np.full((5, 2), 3.0, np.float32)
    short = units.shortened(jnp.asarray(x), jnp.asarray([0.0, 0.5, 1.2, 1.5, 6.0]), 1.5)
    np.testing.assert_array_equal(short, x * np.array([[1.0], [1.0], [1.0], [1.0], [0.25]]))
    far = units.shortened(jnp.ones((1, 1)), jnp.asarray([2.0 * units.LONGEST]))
    np.testing.assert_array_equal(far, 0.5)


def test_the_median_of_an_even_number_of_rows_is_the_upper_one():
    np.testing.assert_array_equal(
        medians(jnp.asarray([[1.0, -4.0], [2.0, -3.0], [3.0, -2.0], [4.0, 0.0]])), [3, -2]
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_typical_size_of_the_largest_floats_is_a_quarter_of_the_range(dtype, x64):
    """So that its reciprocal and its double are numbers as well."""
    info = np.finfo(dtype)
    assert powers(jnp.full((3, 1), info.max, dtype))[0] == 2.0 ** (info.maxexp - 2)
