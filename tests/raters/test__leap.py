"""Leaps: where an iteration nears a point by the same factor they land on it, elsewhere they do not go too far."""

import jax.numpy as jnp
import numpy as np

from robust_rlhf_jax.raters._leap import FARTHEST, leap


def test_a_leap_lands_where_steps_shrink_by_the_same_factor():
    end, off = (
        {"a": jnp.asarray([1.0, -2.0]), "b": jnp.asarray(0.5)},
        {"a": jnp.asarray([3.0, 1.0]), "b": jnp.asarray(-1.0)},
    )
    points = [{name: end[name] + 0.8**n * off[name] for name in end} for n in range(3)]
    for name, found in leap(*points).items():
        np.testing.assert_allclose(found, end[name], atol=1e-4)


def test_a_leap_is_no_longer_than_it_may_be_and_at_least_the_third_point():
    straight = leap(jnp.asarray(0.0), jnp.asarray(1.0), jnp.asarray(2.0))
    np.testing.assert_allclose(straight, 2 * FARTHEST, rtol=1e-6)
    np.testing.assert_allclose(leap(jnp.asarray(0.0), jnp.asarray(1.0), jnp.asarray(-2.0)), -2.0, rtol=1e-6)
    np.testing.assert_allclose(leap(*[jnp.asarray(3.0)] * 3), 3.0)
