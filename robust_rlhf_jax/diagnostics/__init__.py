"""What one can tell of a world: how well it is covered, what the paper promises, what corruption makes hopeless."""

from .bounds import (
    EXPONENTS,
    condition_number_bound,
    coverage_ratio_bound,
    lower_bound,
    sampling_term,
    uniform_bound,
)
from .coverage import Coverage, coverage
from .hidden_actions import HiddenActions, hidden_actions
from .hopeless import (
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
    "LabelLimit",
    "condition_number_bound",
    "coverage",
    "coverage_ratio_bound",
    "erasure_level",
    "hidden_actions",
    "label_budget",
    "label_distance",
    "label_lower_bound",
    "lower_bound",
    "reversal_level",
    "sampling_term",
    "two_world_gap",
    "uniform_bound",
]
