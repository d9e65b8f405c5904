"""Linear MDPs: the model, exact planning, rollouts, and one file per family of worlds.

Sweeps run on the families that `sweeps/families.py` registers in `PRESETS`.
"""

from .chain import chain_mdp
from .delivery import DELIVERY_FEATURES, delivery_grid, delivery_map
from .grid import grid_walls, gridworld
from .linear_mdp import LinearMDP, check_linear_mdp, uniform_policy
from .lower_bound_world import hard_instance
from .partial_coverage import partial_coverage_mdp
from .planning import (
    MixturePolicy,
    Policy,
    SoftmaxMixture,
    expected_features,
    normalised_gap,
    occupancy,
    optimal_policy,
    optimal_state_values,
    policy_value,
)
from .random_worlds import random_linear_mdp
from .rollouts import rollout
from .segments import segment_mdp

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
