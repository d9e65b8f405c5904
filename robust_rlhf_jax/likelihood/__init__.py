"""Bradley–Terry likelihoods of labelled differences: plain, trimmed, and the confidence sets that they give.

The log-likelihood of one label: `kernels/logistic.py`.
"""

from ._stationarity import stationarity, stationarity_bound
from .confidence import (
    ConfidenceSet,
    Ellipsoid,
    calibrated_zeta,
    confidence_set,
    ellipsoid,
    theory_zeta,
)
from .logistic_regression import LogisticProblem, fit_logistic
from .projection import Projection, WarmStart
from .trimmed import TrimmedFit, trimmed_mle

__all__ = [
    "ConfidenceSet",
    "Ellipsoid",
    "LogisticProblem",
    "Projection",
    "TrimmedFit",
    "WarmStart",
    "calibrated_zeta",
    "confidence_set",
    "ellipsoid",
    "fit_logistic",
    "stationarity",
    "stationarity_bound",
    "theory_zeta",
    "trimmed_mle",
]
