"""What one can tell of a world: how well it is covered, what the paper promises, what corruption makes hopeless."""

from ._coverage import Coverage, coverage
from ._hidden_actions import HiddenActions, hidden_actions
from ._stability import Stability, stability
from .bounds import (
    EXPONENTS,
    condition_number_bound,
    coverage_ratio_bound,
    lower_bound,
    oracle_calls,
    sampling_term,
    uniform_bound,
)
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

__all__ = [
    "EXPONENTS",
    "Coverage",
    "HiddenActions",
    "KappaBounds",
    "LabelLimit",
    "Stability",
    "condition_number_bound",
    "coverage",
    "coverage_ratio_bound",
    "erasure_level",
    "hidden_actions",
    "kappa_over",
    "label_budget",
    "label_distance",
    "label_lower_bound",
    "lower_bound",
    "oracle_calls",
    "reversal_level",
    "sampling_term",
    "stability",
    "two_world_gap",
    "uniform_bound",
]
