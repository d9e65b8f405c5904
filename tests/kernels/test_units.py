"""Typical sizes: powers of two near a median, which far, tiny and missing entries cannot move."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.kernels import units

powers, medians = jax.jit(units.typical_powers), jax.jit(units.column_medians)
relative = jax.jit(units.relative_lengths)


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
