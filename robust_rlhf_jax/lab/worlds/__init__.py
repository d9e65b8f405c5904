"""Families of worlds, one file each; the linear MDP itself, planning and rollouts are in `mdp/`, and exported here too.

Sweeps run on the `FAMILIES` that a file here lists (`family.py`).
"""

from robust_rlhf_jax.mdp import (
    LinearMDP,
    MixturePolicy,
    Policy,
    SoftmaxMixture,
    check_linear_mdp,
    expected_features,
    normalised_gap,
    occupancy,
    optimal_policy,
    optimal_state_values,
    policy_value,
    rollout,
    segment_mdp,
    uniform_policy,
)

from .chain import chain_mdp
from .delivery import DELIVERY_FEATURES, delivery_grid, delivery_map
from .grid import grid_walls, gridworld
from .lower_bound_world import hard_instance
from .partial_coverage import partial_coverage_mdp
from .random_worlds import random_linear_mdp

__all__ = [
    "DELIVERY_FEATURES",
    "LinearMDP",
    "MixturePolicy",
    "Policy",
    "SoftmaxMixture",
    "chain_mdp",
    "check_linear_mdp",
    "delivery_grid",
    "delivery_map",
    "expected_features",
    "grid_walls",
    "gridworld",
    "hard_instance",
    "normalised_gap",
    "occupancy",
    "optimal_policy",
    "optimal_state_values",
    "partial_coverage_mdp",
    "policy_value",
    "random_linear_mdp",
    "rollout",
    "segment_mdp",
    "uniform_policy",
]
