"""Audits of preference files: fits on held-out pairs, what is wrong with each pair, what to do about it."""

from .cross_fit import audit
from .detection import average_precision, precision, precision_recall_curve, recall
from .findings import Findings, find
from .folds import clustered_mean, group_folds
from .held_out import HeldOut, hold_out
from .issues import ISSUES, Batch, Issue, find_issues
from .result import AuditResult, FitScores
from .suspects import flag, suspicion_scores
from .verdicts import Verdicts, judge_pairs

__all__ = [
    "ISSUES",
    "AuditResult",
    "Batch",
    "Findings",
    "FitScores",
    "HeldOut",
    "Issue",
    "Verdicts",
    "audit",
    "average_precision",
    "clustered_mean",
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
