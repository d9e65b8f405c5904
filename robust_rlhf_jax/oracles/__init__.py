"""Offline planners: exact, LSVI, R-LSVI, primal–dual."""

from .base import Oracle, OracleResult, WarmOracle, solve_many
from .exact import ExactOracle
from .lsvi import LSVI
from .primal_dual import PrimalDual, theory_steps
from .rlsvi import RLSVI

__all__ = [
    "LSVI",
    "RLSVI",
    "ExactOracle",
    "Oracle",
    "OracleResult",
    "PrimalDual",
    "WarmOracle",
    "solve_many",
    "theory_steps",
]
