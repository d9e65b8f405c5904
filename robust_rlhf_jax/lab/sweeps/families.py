"""The worlds that a sweep runs on, by preset; those that are alike are padded to one shape and share their programs.

Each family is a row of panels: `figures.py` draws them for a sweep, `report/panels.py` for the page.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax.lab.worlds import (
    chain_mdp,
    delivery_grid,
    gridworld,
    partial_coverage_mdp,
    random_linear_mdp,
)
from robust_rlhf_jax.mdp import LinearMDP, optimal_policy, uniform_policy

from ._named_key import named_key


class World(NamedTuple):
    """A decision problem and the policy [H, S, A] that both trajectories of a pair follow."""

    mdp: LinearMDP
    behaviour: Float[Array, "H S A"]


def _uniform(mdp: LinearMDP) -> World:
    return World(mdp, uniform_policy(mdp))


def _holes(key: PRNGKeyArray, **sizes: Any) -> World:
    mdp, (behaviour, _) = partial_coverage_mdp(key, **sizes)
    return World(mdp, behaviour)


def _expert(key: PRNGKeyArray, careless: float = 0.2, **sizes: Any) -> World:
    """A random world whose raters compare near-optimal play: π★, but uniform actions with chance `careless`."""
    mdp = random_linear_mdp(key, **sizes)
    best, _ = optimal_policy(mdp)
    return World(mdp, (1 - careless) * best + careless * uniform_policy(mdp))


class Preset(NamedTuple):
    """Builders of worlds by family name, and the number of pairs per data set.

    `segment`: steps of a compared segment, None for whole episodes; the worlds are then stationary and of one shape.
    `temperature`: of the labels, times that of the sweep.
    """

    families: dict[str, Callable[[jax.Array], World]]
    n_pairs: int
    segment: int | None = None
    temperature: float = 1.0


# Sparse features and six steps: labels carry .45 bits, so that a tenth of them can lie and not all be lost.
SURE = {"n_states": 36, "n_actions": 4, "dim": 6, "horizon": 6, "feature_concentration": 0.2}
SMALL = {"n_states": 8, "n_actions": 3, "dim": 3, "horizon": 2, "feature_concentration": 0.2}

PRESETS = {
    # Three families in a minute or two on two cores, compilation included.
    "quick": Preset(
        {
            "random": lambda key: _uniform(
                random_linear_mdp(key, n_states=36, n_actions=4, dim=6, horizon=4)
            ),
            "chain": lambda key: _uniform(chain_mdp(n_states=20, n_actions=2, dim=6, horizon=4)),
            "gridworld": lambda key: _uniform(gridworld(key, size=6, cells=2, horizon=4)),
            "partial_coverage": lambda key: _holes(key, n_states=36, n_actions=4, dim=6, horizon=4),
        },
        n_pairs=4_000,
    ),
    # The 50×50 grid and the sizes that the tables in the README use.
    "full": Preset(
        {
            "random": lambda key: _uniform(
                random_linear_mdp(key, n_states=60, n_actions=4, dim=6, horizon=5)
            ),
            "chain": lambda key: _uniform(chain_mdp()),
            "gridworld": lambda key: _uniform(gridworld(key, size=50, cells=2, horizon=10)),
            "partial_coverage": lambda key: _holes(key),
        },
        n_pairs=20_000,
    ),
    # The coverage assumptions of the paper's Table 1, one world for each; `reproduce` measures their constants.
    "coverage": Preset(
        {
            "uniform": lambda key: _uniform(random_linear_mdp(key, **SURE)),
            "condition_number": lambda key: _holes(key, **SURE),
            "coverage_ratio": lambda key: _expert(key, **SURE),
        },
        n_pairs=20_000,
    ),
    "coverage_tiny": Preset(
        {
            "uniform": lambda key: _uniform(random_linear_mdp(key, **SMALL)),
            "condition_number": lambda key: _holes(key, n_rare=1, rare_probability=0.02, **SMALL),
            "coverage_ratio": lambda key: _expert(key, **SMALL),
        },
        n_pairs=1_500,
    ),
    # Short segments for long plans, and a goal that few pairs show; a label has .65 bits of entropy.
    "delivery": Preset(
        {"delivery_grid": lambda key: _uniform(delivery_grid(key))},
        n_pairs=5_600,
        segment=7,
        temperature=0.18,
    ),
    "delivery_tiny": Preset(
        {"delivery_grid": lambda key: _uniform(delivery_grid(key, size=4, horizon=10))},
        n_pairs=600,
        segment=4,
        temperature=0.18,
    ),
    # Seconds: for tests and a first look.
    "tiny": Preset(
        {
            "random": lambda key: _uniform(random_linear_mdp(key, n_states=8, n_actions=2, dim=3, horizon=2)),
            "chain": lambda key: _uniform(chain_mdp(n_states=6, n_actions=2, dim=4, horizon=2)),
            "gridworld": lambda key: _uniform(gridworld(key, size=4, cells=2, horizon=2)),
            "partial_coverage": lambda key: _holes(
                key, n_states=8, n_actions=2, dim=3, horizon=2, n_rare=1, rare_probability=0.02
            ),
        },
        n_pairs=300,
    ),
}


def build_worlds(preset: str, families: tuple[str, ...], key: jax.Array) -> list[World]:
    """One world per family, whichever others stand beside it."""
    return [PRESETS[preset].families[name](named_key(key, f"world {name}")) for name in families]


def alike(worlds: dict[str, World]) -> list[tuple[str, ...]]:
    """Families whose rewards have about as many columns H·p: up to 32, 64, 128 and so on.

    The time of a fit grows with the square of its columns, so that a small world padded to a large one takes as long
    as that; below 32 columns compiling another program would take longer.
    """
    groups: dict[int, list[str]] = {}
    for name, world in worlds.items():
        groups.setdefault(max(world.mdp.theta.size - 1, 31).bit_length(), []).append(name)
    return [tuple(names) for _, names in sorted(groups.items())]


def pad_world(world: World, horizon: int, n_states: int, n_actions: int, dim: int) -> World:
    """The same decision problem with larger arrays.

    New feature dimensions are zero; new actions repeat the last one and are never taken by the behaviour; new
    states repeat state 0 and are never entered; new steps pay nothing and stay where they are told to: V★, V^π and
    all gaps are unchanged. Reward features of their own keep their dimension.
    """
    # By NumPy, which has nothing to compile.
    mdp, behaviour = jax.tree.map(np.asarray, world)
    more_steps, more_dims = horizon - mdp.horizon, dim - mdp.dim
    more_states, more_actions = n_states - mdp.n_states, n_actions - mdp.n_actions
    phi = np.pad(mdp.features, ((0, 0), (0, more_actions), (0, 0)), mode="edge")
    phi = np.concatenate([phi, np.repeat(phi[:1], more_states, axis=0)])
    mu = np.pad(mdp.transition_measures, ((0, 0), (0, more_dims), (0, more_states)))
    mu = np.concatenate([mu, np.repeat(mu[-1:], more_steps, axis=0)])
    behaviour = np.pad(behaviour, ((0, more_steps), (0, more_states), (0, 0)), mode="edge")
    reward, more_rewards = mdp.reward_features, more_dims
    if reward is not None:
        reward = np.pad(reward, ((0, 0), (0, more_actions), (0, 0)), mode="edge")
        reward = jax.device_put(np.concatenate([reward, np.repeat(reward[:1], more_states, axis=0)]))
        more_rewards = 0
    padded = LinearMDP(
        features=jax.device_put(np.pad(phi, ((0, 0), (0, 0), (0, more_dims)))),
        transition_measures=jax.device_put(mu),
        theta=jax.device_put(np.pad(mdp.theta, ((0, more_steps), (0, more_rewards)))),
        initial_distribution=jax.device_put(np.pad(mdp.initial_distribution, (0, more_states))),
        reward_features=reward,
    )
    return World(padded, jax.device_put(np.pad(behaviour, ((0, 0), (0, 0), (0, more_actions)))))


def stack_worlds(worlds: list[World]) -> World:
    """Pad to the largest horizon, states, actions and dimension, then stack along a new leading axis."""
    names = ("horizon", "n_states", "n_actions", "dim")
    shape = [max(getattr(world.mdp, name) for world in worlds) for name in names]
    return jax.tree.map(
        lambda *leaves: jax.device_put(np.stack(leaves)), *[pad_world(w, *shape) for w in worlds]
    )
