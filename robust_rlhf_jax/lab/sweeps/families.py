"""The worlds that a sweep runs on, by preset; those that are alike are padded to one shape and share their programs.

Each file in `lab/worlds/` says in its `FAMILIES` which presets may run its worlds. Each family is a row of panels:
`figures.py` draws them for a sweep, `report/panels.py` for the page.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from robust_rlhf_jax.collected import in_order, modules_of
from robust_rlhf_jax.lab import worlds
from robust_rlhf_jax.lab.worlds.family import World, families_of
from robust_rlhf_jax.mdp import LinearMDP

from ._named_key import named_key

# The order of tables and help texts; a family that is not here follows, by name.
FIRST = (
    "random",
    "chain",
    "gridworld",
    "partial_coverage",
    "uniform",
    "condition_number",
    "coverage_ratio",
    "delivery_grid",
)
FAMILIES = in_order(families_of(modules_of(worlds)), FIRST)
Builders = dict[str, Callable[[jax.Array], World]]


class Preset(NamedTuple):
    """Builders of worlds by family name, and the number of pairs per data set.

    `families`: those that stand for the preset; `further`: those that run where they are named.
    `segment`: steps of a compared segment, None for whole episodes; the worlds are then stationary and of one shape.
    `temperature`: of the labels, times that of the sweep.
    """

    families: Builders
    n_pairs: int
    segment: int | None = None
    temperature: float = 1.0
    further: Builders | None = None

    @property
    def every(self) -> Builders:
        """All families that `--families` takes."""
        return self.families | (self.further or {})


def _preset(name: str, n_pairs: int, **others: Any) -> Preset:
    """The preset with the families of `lab/worlds/` that have worlds for it."""
    has = [family for family in FAMILIES.values() if name in family.builders]
    usual, further = ({f.name: partial(f.build, name) for f in has if f.usual == u} for u in (True, False))
    return Preset(usual, n_pairs, further=further, **others)


PRESETS = {
    # Three families in a minute or two on two cores, compilation included.
    "quick": _preset("quick", n_pairs=4_000),
    # The 50×50 grid and the sizes that the tables in the README use.
    "full": _preset("full", n_pairs=20_000),
    # The coverage assumptions of the paper's Table 1, one world for each; `reproduce` measures their constants.
    "coverage": _preset("coverage", n_pairs=20_000),
    "coverage_tiny": _preset("coverage_tiny", n_pairs=1_500),
    # Short segments for long plans, and a goal that few pairs show; a label has .65 bits of entropy.
    "delivery": _preset("delivery", n_pairs=5_600, segment=7, temperature=0.18),
    "delivery_tiny": _preset("delivery_tiny", n_pairs=600, segment=4, temperature=0.18),
    # Seconds: for tests and a first look.
    "tiny": _preset("tiny", n_pairs=300),
}


def build_worlds(preset: str, families: tuple[str, ...], key: jax.Array) -> list[World]:
    """One world per family, whichever others stand beside it."""
    return [PRESETS[preset].every[name](named_key(key, f"world {name}")) for name in families]


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
