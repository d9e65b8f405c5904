"""Rewards from labelled differences: `fit_reward`, and what it is made of."""

from .epsilon_estimate import EpsilonEstimate, estimate_epsilon
from .filter_and_trim import FilteredReward, robust_reward
from .fit import CEILING, RewardFit, fit_differences, fit_with_alternative
from .front_door import believed_differences, fit_data, fit_reward, group_numbers
from .model import RewardModel
from .registry import REWARD_ESTIMATORS

__all__ = [
    "CEILING",
    "REWARD_ESTIMATORS",
    "EpsilonEstimate",
    "FilteredReward",
    "RewardFit",
    "RewardModel",
    "believed_differences",
    "estimate_epsilon",
    "fit_data",
    "fit_differences",
    "fit_reward",
    "fit_with_alternative",
    "group_numbers",
    "robust_reward",
]
