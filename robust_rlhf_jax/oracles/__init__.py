"""Offline planners: exact, LSVI, R-LSVI."""

from .base import Oracle, OracleResult, solve_many
from .exact import ExactOracle
from .lsvi import LSVI
from .rlsvi import RLSVI

__all__ = ["LSVI", "RLSVI", "ExactOracle", "Oracle", "OracleResult", "solve_many"]
