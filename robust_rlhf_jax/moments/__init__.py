"""Mean, covariance and regression that survive an ε-fraction of arbitrary rows."""

from .covariance import RobustCovariance, robust_covariance
from .mean import FilteredMean, filter_mean, robust_mean
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
