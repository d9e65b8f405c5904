"""Audits of preference files: fits on held-out pairs, what is wrong with each pair, what to do about it."""

from ._clustered_mean import clustered_mean
from .advice import Advice, advise
from .by_passes import SourceAudit, SourceRater, audit_source
from .cross_fit import audit
from .detection import average_precision, precision, precision_recall_curve, recall
from .findings import Findings, find
from .folds import group_folds
from .gain import Gain, cross_fitted_gain
from .held_out import HeldOut, hold_out
from .issues import ISSUES, Batch, Issue, find_issues
from .result import AuditResult, FitScores
from .suspects import flag, suspicion_scores
from .verdicts import Verdicts, judge_pairs

__all__ = [
    "ISSUES",
    "Advice",
    "AuditResult",
    "Batch",
    "Findings",
    "FitScores",
    "Gain",
    "HeldOut",
    "Issue",
    "SourceAudit",
    "SourceRater",
    "Verdicts",
    "advise",
    "audit",
    "audit_source",
    "average_precision",
    "clustered_mean",
    "cross_fitted_gain",
    "find",
    "find_issues",
    "flag",
    "group_folds",
    "hold_out",
    "judge_pairs",
    "precision",
    "precision_recall_curve",
    "recall",
    "suspicion_scores",
]
