"""What one can tell: audits of files, detection scores, how well a world is covered, what the paper promises."""

from ._coverage import Coverage, coverage
from ._hidden_actions import HiddenActions, hidden_actions
from .audit import AuditResult, audit
from .audit_fits import AUDIT_FITS
from .bounds import (
    EXPONENTS,
    condition_number_bound,
    coverage_ratio_bound,
    lower_bound,
    oracle_calls,
    sampling_term,
    uniform_bound,
)
from .detection import average_precision, precision, precision_recall_curve, recall
from .folds import clustered_mean, group_folds
from .kappa import KappaBounds, kappa_over
from .label_limits import (
    LabelLimit,
    erasure_level,
    label_budget,
    label_distance,
    label_lower_bound,
    reversal_level,
    two_world_gap,
)
from .stability import Stability, stability
from .suspicion import flag, suspicion_scores

__all__ = [
    "AUDIT_FITS",
    "EXPONENTS",
    "AuditResult",
    "Coverage",
    "HiddenActions",
    "KappaBounds",
    "LabelLimit",
    "Stability",
    "audit",
    "average_precision",
    "clustered_mean",
    "condition_number_bound",
    "coverage",
    "coverage_ratio_bound",
    "erasure_level",
    "flag",
    "group_folds",
    "hidden_actions",
    "kappa_over",
    "label_budget",
    "label_distance",
    "label_lower_bound",
    "lower_bound",
    "oracle_calls",
    "precision",
    "precision_recall_curve",
    "recall",
    "reversal_level",
    "sampling_term",
    "stability",
    "suspicion_scores",
    "two_world_gap",
    "uniform_bound",
]
