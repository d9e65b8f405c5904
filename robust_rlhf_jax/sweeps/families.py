"""The worlds that a sweep runs on, by preset, padded to one shape so that one program serves them all."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from robust_rlhf_jax.mdp import LinearMDP, chain_mdp, gridworld, random_linear_mdp


class Preset(NamedTuple):
    """Builders of worlds by family name, and the number of pairs per data set."""

    families: dict[str, Callable[[jax.Array], LinearMDP]]
    n_pairs: int


PRESETS = {
    # Three families in two minutes on two cores, compilation included.
    "quick": Preset(
        {
            "random": lambda key: random_linear_mdp(key, n_states=36, n_actions=4, dim=6, horizon=4),
            "chain": lambda key: chain_mdp(n_states=20, n_actions=2, dim=6, horizon=4),
            "gridworld": lambda key: gridworld(key, size=6, cells=2, horizon=4),
        },
        n_pairs=4_000,
    ),
    # The 50×50 grid and the sizes that the tables in the README use.
    "full": Preset(
        {
            "random": lambda key: random_linear_mdp(key, n_states=60, n_actions=4, dim=6, horizon=5),
            "chain": lambda key: chain_mdp(),
            "gridworld": lambda key: gridworld(key, size=50, cells=2, horizon=10),
        },
        n_pairs=20_000,
    ),
    # Seconds: for tests and a first look.
    "tiny": Preset(
        {
            "random": lambda key: random_linear_mdp(key, n_states=8, n_actions=2, dim=3, horizon=2),
            "chain": lambda key: chain_mdp(n_states=6, n_actions=2, dim=4, horizon=2),
            "gridworld": lambda key: gridworld(key, size=4, cells=2, horizon=2),
        },
        n_pairs=300,
    ),
}


def build_worlds(preset: str, families: tuple[str, ...], key: jax.Array) -> list[LinearMDP]:
    """One world per family."""
    return [PRESETS[preset].families[name](key) for name in families]


def pad_world(mdp: LinearMDP, horizon: int, n_states: int, n_actions: int, dim: int) -> LinearMDP:
    """The same decision problem with larger arrays.

    New feature dimensions are zero; new actions repeat the last one; new states repeat state 0 and are never
    entered; new steps pay nothing and stay where they are told to: V★, V^π and all gaps are unchanged.
    """
    more_steps, more_dims = horizon - mdp.horizon, dim - mdp.dim
    phi = jnp.pad(mdp.features, ((0, 0), (0, n_actions - mdp.n_actions), (0, 0)), mode="edge")
    phi = jnp.concatenate([phi, jnp.repeat(phi[:1], n_states - mdp.n_states, axis=0)])
    mu = jnp.pad(mdp.transition_measures, ((0, 0), (0, more_dims), (0, n_states - mdp.n_states)))
    mu = jnp.concatenate([mu, jnp.repeat(mu[-1:], more_steps, axis=0)])
    return LinearMDP(
        features=jnp.pad(phi, ((0, 0), (0, 0), (0, more_dims))),
        transition_measures=mu,
        theta=jnp.pad(mdp.theta, ((0, more_steps), (0, more_dims))),
        initial_distribution=jnp.pad(mdp.initial_distribution, (0, n_states - mdp.n_states)),
    )


def stack_worlds(worlds: list[LinearMDP]) -> LinearMDP:
    """Pad to the largest horizon, states, actions and dimension, then stack along a new leading axis."""
    shape = [max(getattr(w, name) for w in worlds) for name in ("horizon", "n_states", "n_actions", "dim")]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *[pad_world(w, *shape) for w in worlds])
