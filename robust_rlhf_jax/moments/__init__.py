"""Mean, covariance and regression that survive an ε-fraction of arbitrary rows."""

from .filters import FilteredMean, RobustCovariance, filter_mean, robust_covariance, robust_mean
from .regression import RegressionDesign, prepare_design, robust_linear_regression

__all__ = [
    "FilteredMean",
    "RegressionDesign",
    "RobustCovariance",
    "filter_mean",
    "prepare_design",
    "robust_covariance",
    "robust_linear_regression",
    "robust_mean",
]
