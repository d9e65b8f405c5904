"""Rewards from labelled differences: `fit_reward`, and what it is made of."""

from .fit import RewardFit, fit_differences
from .front_door import fit_data, fit_reward
from .model import RewardModel

__all__ = ["RewardFit", "RewardModel", "fit_data", "fit_differences", "fit_reward"]
