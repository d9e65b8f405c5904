"""The paper's claims, measured: `robust-rlhf reproduce table1` and `robust-rlhf reproduce robustness`."""

from .command import reproduce_robustness, reproduce_table1
from .exponents import Exponent, fit_exponent
from .worst_case import WorstCase, area, worst_cases

__all__ = [
    "Exponent",
    "WorstCase",
    "area",
    "fit_exponent",
    "reproduce_robustness",
    "reproduce_table1",
    "worst_cases",
]
