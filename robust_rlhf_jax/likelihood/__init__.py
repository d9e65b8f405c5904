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
from .davidson import outcome_log_chances, tie_chances, tie_strength
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
    "outcome_log_chances",
    "stationarity",
    "stationarity_bound",
    "theory_zeta",
    "tie_chances",
    "tie_strength",
    "trimmed_mle",
]
