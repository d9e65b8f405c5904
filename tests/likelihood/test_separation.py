"""Directions without a best length, and pairs that are all won."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.special
from slow_parameters import slow

from robust_rlhf_jax.likelihood.separation import FLAT, FLAT_AT_MOST, all_won, some_direction_flat

is_flat = jax.jit(some_direction_flat)


@pytest.mark.parametrize("columns", [slow(1), 3])
def test_one_direction_of_sure_pairs_is_flat(columns):
    """However many others there are, of whose pairs the fit is not sure; rows of zeros have no direction."""
    x = np.eye(columns, dtype=np.float32)[np.arange(120) % columns]
    for sure, flat in ((np.arange(120) % columns == 0, True), (np.zeros(120, bool), False)):
        margins = jnp.where(jnp.asarray(sure), 14.0, -1.0)
        assert is_flat(jnp.asarray(x), jnp.ones(120), margins, jnp.float32(0.0)) == flat
        assert not is_flat(jnp.zeros((120, columns)), jnp.ones(120), margins, jnp.float32(0.0))


@pytest.mark.slow
@pytest.mark.parametrize(("rank", "k"), [(1, 3), (2, 4)])
def test_directions_that_no_row_shows_are_not_flat(rank, k):
    x = jnp.asarray(np.eye(k, dtype=np.float32)[np.arange(120) % rank])
    for margin, flat in ((-1.0, False), (14.0, True)):
        assert is_flat(x, jnp.ones(120), jnp.full(120, margin), jnp.float32(0.0)) == flat


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wide", "n", "level"),
    [
        (True, 120, FLAT),
        (False, 120, 4 * 120 * np.finfo(np.float32).eps),
        (False, 3000, FLAT_AT_MOST),
    ],
)
def test_flat_is_below_a_level_that_rounding_may_raise(wide, n, level):
    """P(1 − P) the same for all pairs, a tenth above or below it; the weights of the pairs do not matter then."""
    x, weights = np.eye(2)[np.arange(n) % 2], 1.0 + np.arange(n) % 3
    with jax.enable_x64(wide):
        for share, flat in ((0.9, True), (1.1, False)):
            chance = 0.5 - np.sqrt(0.25 - share * level)
            margins = jnp.full(n, -scipy.special.logit(chance))
            assert is_flat(*map(jnp.asarray, (x, weights)), margins, 0.0) == flat


@pytest.mark.parametrize(
    ("x", "weights", "margins", "won"),
    [
        ([[1, 0], [0, -1], [0, 0.3]], [1, 1, 0.5], [0.2, 3, 0.1], True),
        ([[1, 0], [0, -1], [0, 0.3]], [1, 1, 0.5], [0.2, 3, 0], False),
        ([[1, 0], [0, -1], [0, 0.3]], [1, 1, 0.5], [0.2, -3, 0.1], False),
        ([[1, 0], [0, -1], [0, 0.3]], [1, 0, 0.5], [0.2, -3, 0.1], True),  # a trimmed pair
        ([[1, 0], [0, 0], [0, 0.3]], [1, 1, 0.5], [0.2, 0, 0.1], True),  # a row of zeros
        ([[1, 0], [0, -1], [0, 0]], [0, 0, 0.5], [0.2, 3, 0.1], False),  # no pair that counts
    ],
)
def test_all_is_won_where_every_pair_that_counts_is(x, weights, margins, won):
    assert all_won(*(jnp.asarray(part, jnp.float32) for part in (x, weights, margins))) == won
