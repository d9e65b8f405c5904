"""What one can tell from data alone: audits of preference files, and how well corrupt pairs are found."""

from .audit import AuditResult, audit
from .audit_fits import AUDIT_FITS
from .detection import average_precision, precision, precision_recall_curve, recall
from .folds import clustered_mean, group_folds
from .suspicion import flag, suspicion_scores

__all__ = [
    "AUDIT_FITS",
    "AuditResult",
    "audit",
    "average_precision",
    "clustered_mean",
    "flag",
    "group_folds",
    "precision",
    "precision_recall_curve",
    "recall",
    "suspicion_scores",
]
