"""Subgradients of V̂: K = 256 smoothed directions beside as many calls, and the derivative beside one value."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax import LSVI, RLSVI, attacks, random_linear_mdp, sample_preferences
from robust_rlhf_jax.kernels.smoothing import smoothed_gradient

PAIRS, EPSILON, K, STD = 20_000, 0.1, 256, 0.05
SIZE = "N = 20,000, H = 5, d = 6, S = 60, A = 4, ε = .1"
NAMES = {RLSVI: "R-LSVI", LSVI: "LSVI"}
oracles = pytest.mark.parametrize("oracle", [RLSVI(), LSVI()], ids=lambda o: NAMES[type(o)])


@pytest.fixture(scope="module")
def world():
    mdp = random_linear_mdp(jax.random.key(0), n_states=60, n_actions=4, dim=6, horizon=5)
    data = sample_preferences(jax.random.key(1), mdp, PAIRS)
    data = attacks.push_features(jax.random.key(2), data, EPSILON, mdp)
    return jax.block_until_ready((data, mdp.theta))


def value_of(oracle, prepared, flat):
    return oracle.solve(prepared, flat.reshape(5, 6)).value


def prepare(oracle, data):
    return jax.block_until_ready(
        jax.jit(lambda d: oracle.prepare(d, jnp.float32(EPSILON), key=jax.random.key(0)))(data)
    )


@oracles
def test_smoothed_gradient(measure, beside, world, oracle):
    """K + 1 = 257 values in one program, and 257 jitted calls at the same points."""
    prepared, theta, key = prepare(oracle, world[0]), world[1].reshape(-1), jax.random.key(4)
    value = jax.jit(partial(value_of, oracle))

    @jax.jit
    def smoothed(prepared, theta):
        f = partial(value_of, oracle, prepared)
        return smoothed_gradient(f, theta, key, smoothing_std=jnp.float32(STD), n_directions=K)

    points = list(theta + STD * jax.random.normal(key, (K + 1, theta.shape[0])))

    def one_by_one():
        return [value(prepared, point) for point in points]

    name = f"{NAMES[type(oracle)]} smoothed gradient, K = {K}"
    found = measure(lambda: smoothed(prepared, theta), what=name, size=SIZE, group=name, rounds=5)
    assert np.isfinite(found.gradient).all()
    beside(lambda: smoothed(prepared, theta), one_by_one, name=f"{K + 1} jitted calls")


@oracles
def test_derivative(measure, beside, world, oracle):
    """`value_and_grad` beside `value`: the ratio's inverse is what a derivative costs in value calls."""
    prepared, theta = prepare(oracle, world[0]), world[1].reshape(-1)
    value = jax.jit(partial(value_of, oracle))
    both = jax.jit(lambda prepared, t: jax.value_and_grad(partial(value_of, oracle, prepared))(t))
    name = f"{NAMES[type(oracle)]} value and derivative"
    found = measure(lambda: both(prepared, theta), what=name, size=SIZE, group=name, rounds=20)
    np.testing.assert_allclose(found[0], value(prepared, theta), rtol=1e-5)
    beside(lambda: both(prepared, theta), lambda: value(prepared, theta), name="one value call")
