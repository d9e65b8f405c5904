"""Rewards from labelled differences: `fit_reward`, and what it is made of."""

from .config import CEILING, RobustFit
from .epsilon_estimate import EpsilonEstimate, estimate_epsilon
from .explanations import Explanations
from .filter_and_trim import FilteredReward, robust_reward
from .fit import fit_differences, fit_with_alternative, plain_fit
from .front_door import fit_data, fit_reward
from .model import RewardModel
from .registry import REWARD_ESTIMATORS
from .reward_fit import RewardFit
from .streamed import Processes, RayTasks, Streaming, fit_source

__all__ = [
    "CEILING",
    "REWARD_ESTIMATORS",
    "EpsilonEstimate",
    "Explanations",
    "FilteredReward",
    "Processes",
    "RayTasks",
    "RewardFit",
    "RewardModel",
    "RobustFit",
    "Streaming",
    "estimate_epsilon",
    "fit_data",
    "fit_differences",
    "fit_reward",
    "fit_source",
    "fit_with_alternative",
    "plain_fit",
    "robust_reward",
]
