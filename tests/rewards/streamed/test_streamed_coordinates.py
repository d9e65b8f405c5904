"""Coordinates by passes, against NumPy in float64 and those of memory."""

import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.kernels.units import LONGEST as LONGEST_IN_MEMORY
from robust_rlhf_jax.rewards.coordinates import unit_free
from robust_rlhf_jax.rewards.streamed.coordinates import (
    LONGEST,
    coordinates_of,
    lengths_and_margins,
    level_basis,
    second_moment,
    typical_columns,
)
from robust_rlhf_jax.rewards.streamed.passes import Passes
from robust_rlhf_jax.sources import ArraySource


def rows(n=3_000, k=7, null=0):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(n, k)) * np.logspace(-2, 2, k)
    for column in range(null):
        x[:, column] = x[:, k - 1] * 0.5
    return x.astype(np.float32)


def streamed(x):
    passes, columns = Passes(ArraySource(x)), typical_columns(jnp.asarray(x))
    moment = second_moment(passes, columns, level_basis(jnp.asarray(x[::3]), columns))
    return passes, columns, moment, coordinates_of(moment, columns)


def beside_memory(x):
    """(coordinates by passes, lengths in them, coordinates in memory)."""
    passes, _, _, found = streamed(x)
    lengths, _, _ = lengths_and_margins(passes, found, jnp.zeros((1, x.shape[1])))
    return found, lengths[: len(x)], unit_free(jnp.asarray(x), jnp.ones(len(x)))


@pytest.mark.slow
def test_second_moment_is_that_of_float64():
    x = rows()
    _, columns, moment, _ = streamed(x)
    scaled = x.astype(np.float64) / np.asarray(columns.size, np.float64)
    np.testing.assert_allclose(moment, scaled.T @ scaled / len(x), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_coordinates_are_those_of_memory():
    x = rows()
    found, lengths, expected = beside_memory(x)
    np.testing.assert_allclose(lengths, expected.lengths(), rtol=1e-4)
    np.testing.assert_allclose(np.sort(found.penalty), np.sort(expected.penalty), rtol=1e-3)
    np.testing.assert_allclose(found.from_theta @ found.to_theta, np.eye(7), atol=1e-4)


@pytest.mark.slow
def test_a_column_of_zeros_whose_moment_is_rounded_below_zero_is_null():
    x = rows()
    x[:, 3] = 0
    _, columns, moment, _ = streamed(x)
    moment[3, 3] = -1e-16
    found = coordinates_of(moment, columns)
    assert int(found.rank) == 6
    assert np.isfinite(found.penalty).all()
    assert np.isfinite(found.to_theta).all()
    np.testing.assert_allclose(found.to_theta[3], 0, atol=1e-12)


def test_null_directions_are_none():
    _, _, _, found = streamed(rows(null=2))
    assert int(found.rank) == 5
    assert int(np.sum(np.asarray(found.penalty) == 0)) == 2


def test_margins_are_products():
    x, theta = rows(), np.random.default_rng(3).normal(size=(3, 7)).astype(np.float32)
    passes, _, _, found = streamed(x)
    _, margins, _ = lengths_and_margins(passes, found, jnp.asarray(theta))
    assert margins.shape == (3, passes.padded)
    np.testing.assert_allclose(margins[:, : len(x)], theta @ x.T, rtol=1e-4, atol=1e-3)
    assert not margins[:, len(x) :].any()


def test_rows_that_lie_absurdly_far_out_are_shortened():
    x = rows()
    x[5] *= 1e7
    _, lengths, expected = beside_memory(x)
    in_memory = np.array(expected.lengths())
    in_memory[5] *= LONGEST / LONGEST_IN_MEMORY
    np.testing.assert_allclose(lengths, in_memory, rtol=1e-3)


@pytest.mark.slow
def test_directions_far_below_the_root_of_the_rounding_are_kept_as_in_memory():
    """Standard deviations from 1 to 10⁻⁴ in columns of like size, of which a float32 second moment has 10⁻⁸."""
    rng = np.random.default_rng(6)
    turn = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    x = (rng.normal(size=(3_000, 8)) * np.logspace(0, -4, 8) @ turn).astype(np.float32)
    found, lengths, expected = beside_memory(x)
    assert int(found.rank) == int(expected.rank) == 8
    np.testing.assert_allclose(lengths, expected.lengths(), rtol=5e-3)


def test_a_direction_that_the_sample_does_not_show_is_kept():
    x = rows()
    x[:, 2] = 0.0
    x[1, 2] = 3.0  # not among every third row
    found, lengths, expected = beside_memory(x)
    assert int(found.rank) == int(expected.rank) == 7
    np.testing.assert_allclose(lengths, expected.lengths(), rtol=1e-3)


def test_level_columns_serve_as_they_are():
    x = jnp.asarray(rows())
    assert level_basis(x, typical_columns(x)) is None
    steep = x.at[:, 0].set(x[:, 1] + 1e-3 * x[:, 0])
    assert level_basis(steep, typical_columns(steep)) is not None
