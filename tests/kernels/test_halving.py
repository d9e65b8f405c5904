"""Bisection against SciPy's, the longest acceptable step against a loop in Python."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st

from robust_rlhf_jax.kernels.halving import bisect, longest_step


def test_bisection_finds_the_roots_that_scipy_finds(x64):
    targets = np.array([0.1, 0.5, 2.0, 7.9])
    low, high = jax.jit(lambda t: bisect(lambda c: c**3 <= t, jnp.zeros(4), jnp.full(4, 2.0), 50))(targets)
    roots = [scipy.optimize.bisect(lambda c, t=t: c**3 - t, 0.0, 2.0, xtol=1e-14) for t in targets]
    np.testing.assert_allclose(low, roots, atol=1e-13)
    assert np.all(np.asarray(low) <= np.asarray(high))
    assert np.all(np.asarray(low) ** 3 <= targets)


@pytest.mark.parametrize(("always", "end"), [(True, 1.0), (False, 0.0)])
def test_bisection_runs_to_the_end_that_the_condition_says(always, end):
    low, high = bisect(lambda c: jnp.asarray(always), jnp.zeros(()), jnp.ones(()), 20)
    assert abs(float(low) - end) <= 2.0**-20
    assert float(high) - float(low) == pytest.approx(2.0**-20)


@pytest.mark.slow
@given(limit=st.floats(2.0**-13, 2.0, width=32))
def test_the_longest_step_is_that_of_a_loop(limit):
    halvings, scale, point = longest_step(lambda s: 3.0 * s, lambda s, p: s <= limit, 30, jnp.float32)
    expected, count = 1.0, 0
    while expected > limit:
        expected, count = expected / 2, count + 1
    assert (int(halvings), float(scale), float(point)) == (count, expected, 3.0 * expected)


def test_no_step_is_acceptable_and_the_count_says_so():
    halvings, scale, _ = longest_step(lambda s: s, lambda s, p: jnp.asarray(False), 7, jnp.float32)
    assert (int(halvings), float(scale)) == (7, 2.0**-7)


def test_lanes_of_a_batch_stop_where_each_alone_would():
    limits = jnp.asarray([0.9, 0.3, 0.01])

    def search(limit):
        return longest_step(lambda s: s * jnp.ones(2), lambda s, p: p[0] <= limit, 20, jnp.float32)

    together = jax.vmap(search)(limits)
    for lane, limit in enumerate(limits):
        for one, all_lanes in zip(search(limit), together, strict=True):
            np.testing.assert_array_equal(one, all_lanes[lane])
