"""The linear MDP: the model, exact planning, rollouts. Families of worlds are in `lab/worlds/`."""

from .linear_mdp import LinearMDP, check_linear_mdp, uniform_policy
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
from .rollouts import rollout
from .segments import segment_mdp

__all__ = [
    "LinearMDP",
    "MixturePolicy",
    "Policy",
    "SoftmaxMixture",
    "check_linear_mdp",
    "expected_features",
    "normalised_gap",
    "occupancy",
    "optimal_policy",
    "optimal_state_values",
    "policy_value",
    "rollout",
    "segment_mdp",
    "uniform_policy",
]
