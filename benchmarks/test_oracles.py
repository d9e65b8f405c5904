"""LSVI, R-LSVI and the exact oracle: preparing once and solving for one θ, as N, H and d grow."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from samples import EPSILON, WORLD, WORLDS, preparation, prepared, world, world_id, world_size

from robust_rlhf_jax.oracles import LSVI, RLSVI, ExactOracle

NAMES = {RLSVI: "R-LSVI", LSVI: "LSVI"}
oracles = pytest.mark.parametrize("oracle", [RLSVI(), LSVI()], ids=lambda oracle: NAMES[type(oracle)])
sizes = pytest.mark.parametrize("size", WORLDS, ids=world_id)


def name_of(oracle):
    return NAMES[type(oracle)]


def transitions(size):
    """What a run of the regressions processes: a step of either trajectory of a pair."""
    return 2 * size["n"] * size["h"], "transitions"


@oracles
@sizes
def test_prepare(measure, sized, oracle, size):
    size = sized(size)
    data = world(**size)[1]
    measure(
        preparation(oracle),
        data,
        jnp.float32(EPSILON),
        what=f"{name_of(oracle)} `prepare`",
        size=world_size(**size),
        work=transitions(size),
        rounds=5,
    )


@oracles
@sizes
def test_solve(measure, sized, oracle, size):
    size = sized(size)
    found = measure(
        jax.jit(oracle.solve),
        prepared(oracle, **size),
        world(**size)[0].theta,
        what=f"{name_of(oracle)} `solve`",
        size=world_size(**size),
        work=(1, "solves"),
        rounds=20,
    )
    assert np.isfinite(found.value)


def test_exact(measure, sized):
    """What planning costs where nothing need be estimated."""
    size = sized(WORLD)
    mdp, _ = world(**size)
    measure(
        jax.jit(lambda mdp, theta: ExactOracle(mdp).solve(mdp, theta)),
        mdp,
        mdp.theta,
        what="exact `solve`",
        size=world_size(**size),
        work=(1, "solves"),
        rounds=20,
    )
