"""Subgradients of V̂: K smoothed directions beside as many calls, and the derivative beside one value."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from samples import WORLD, prepared, world, world_size
from test_oracles import name_of, oracles

from robust_rlhf_jax.kernels.smoothing import smoothed_gradient

STD = 0.05
# That of docs/speed.md first; it alone is held against calls.
DIRECTIONS = [256, 32, 128, 1024]


def value_of(oracle, shape, prepared, flat):
    return oracle.solve(prepared, flat.reshape(shape)).value


@pytest.fixture
def problem(sized, oracle):
    """(V̂ of (prepared, θ [H·p]), what was prepared, θ, the size in words)."""
    size = sized(WORLD)
    theta = world(**size)[0].theta
    value = partial(value_of, oracle, theta.shape)
    return value, prepared(oracle, **size), theta.reshape(-1), world_size(**size)


@oracles
@pytest.mark.parametrize("count", DIRECTIONS)
def test_smoothed_gradient(measure, beside, problem, oracle, count):
    """K + 1 values in one program, and as many jitted calls at the same points."""
    value, ready, theta, size = problem
    key = jax.random.key(4)

    @jax.jit
    def smoothed(ready, theta):
        std = jnp.float32(STD)
        return smoothed_gradient(partial(value, ready), theta, key, smoothing_std=std, n_directions=count)

    found = measure(
        smoothed,
        ready,
        theta,
        what=f"{name_of(oracle)} smoothed gradient, K = {count}",
        size=size,
        work=(count, "directions"),
        rounds=3 if count > 256 else 5,
    )
    assert np.isfinite(found.gradient).all()
    if count == DIRECTIONS[0]:
        call = jax.jit(value)
        points = list(theta + STD * jax.random.normal(key, (count + 1, theta.shape[0])))
        one_by_one = lambda: [call(ready, point) for point in points]  # noqa: E731
        beside(lambda: smoothed(ready, theta), one_by_one, name=f"{count + 1} jitted calls")


@oracles
def test_derivative(measure, beside, problem, oracle):
    """`value_and_grad` beside `value`: the ratio's inverse is what a derivative costs in value calls."""
    value, ready, theta, size = problem
    call, both = jax.jit(value), jax.jit(jax.value_and_grad(value, argnums=1))
    found = measure(
        both,
        ready,
        theta,
        what=f"{name_of(oracle)} value and derivative",
        size=size,
        work=(1, "derivatives"),
        rounds=20,
    )
    np.testing.assert_allclose(found[0], call(ready, theta), rtol=1e-5)
    beside(lambda: both(ready, theta), lambda: call(ready, theta), name="one value call")
