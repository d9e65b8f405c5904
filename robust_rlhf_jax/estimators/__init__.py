"""Robust moments, regression and maximum likelihood, and the reward estimate made of them."""

from .confidence_set import (
    ConfidenceSet,
    Ellipsoid,
    calibrated_zeta,
    confidence_set,
    ellipsoid,
    theory_zeta,
)
from .logistic_regression import LogisticProblem, fit_logistic
from .moments import FilteredMean, RobustCovariance, filter_mean, robust_covariance, robust_mean
from .projection import Projection, WarmStart
from .regression import RegressionDesign, prepare_design, robust_linear_regression
from .reward import RewardEstimate, robust_reward
from .reward_fits import REWARD_ESTIMATORS
from .reward_protocol import RewardEstimator, RewardFit
from .stationarity import stationarity, stationarity_bound
from .trimmed_mle import TrimmedFit, trimmed_mle

__all__ = [
    "REWARD_ESTIMATORS",
    "ConfidenceSet",
    "Ellipsoid",
    "FilteredMean",
    "LogisticProblem",
    "Projection",
    "RegressionDesign",
    "RewardEstimate",
    "RewardEstimator",
    "RewardFit",
    "RobustCovariance",
    "TrimmedFit",
    "WarmStart",
    "calibrated_zeta",
    "confidence_set",
    "ellipsoid",
    "filter_mean",
    "fit_logistic",
    "prepare_design",
    "robust_covariance",
    "robust_linear_regression",
    "robust_mean",
    "robust_reward",
    "stationarity",
    "stationarity_bound",
    "theory_zeta",
    "trimmed_mle",
]
