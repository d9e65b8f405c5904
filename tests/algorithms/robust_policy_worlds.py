"""Data sets, fits and sets of rewards that the tests of `robust_policy` share."""

import jax
import jax.numpy as jnp

from robust_rlhf_jax import sample_preferences
from robust_rlhf_jax.algorithms.possible_rewards import STANDARD_ERRORS, PossibleRewards
from robust_rlhf_jax.lab.sweeps.families import PRESETS
from robust_rlhf_jax.likelihood.confidence import ellipsoid
from robust_rlhf_jax.rewards import RewardFit

PAIRS = 3000
KEY = jax.random.key(7)


def world(family, seed=100):
    built = PRESETS["coverage"].families[family](jax.random.key(seed))
    data = sample_preferences(
        jax.random.key(seed + 1), built.mdp, PAIRS, behaviour=(built.behaviour, built.behaviour)
    )
    return built.mdp, data


def fit_of(weights, **fields):
    """A fit of which nothing else is asked."""
    known = {"weights": weights, "undisputed": weights, "doubted": jnp.zeros((2, 2))} | fields
    return RewardFit(**(dict.fromkeys(RewardFit._fields) | known))


def rewards_about(known, centre, sizes, radius):
    """Θ about the scaled `centre`, `known` being the information of scaled θ."""
    known, centre = jnp.asarray(known), jnp.asarray(centre)
    factor = jnp.linalg.cholesky(known)
    return PossibleRewards(
        ellipsoid(known, centre, STANDARD_ERRORS, radius),
        jnp.asarray(sizes),
        factor,
        jnp.zeros((0, len(centre))),
    )
