"""Audits of preference files: plain against robust on held-out pairs, suspicion scores, how well they detect."""

from .cross_fit import AuditResult, audit
from .detection import average_precision, precision, precision_recall_curve, recall
from .fits import AUDIT_FITS
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
