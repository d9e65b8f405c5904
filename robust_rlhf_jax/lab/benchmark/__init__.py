"""Every attack on every file, and which reward estimate survives it: `robust-rlhf benchmark`."""

from robust_rlhf_jax.lab.pair_attacks import PAIR_ATTACKS

from .config import QUICK, BenchmarkConfig
from .contestant import Contestant, Fitted, contestants
from .plugins import players
from .problems import WORLDS, Problem, read_problem
from .run import run_benchmark
from .scores import prediction_scores
from .summary import Standing, standings

__all__ = [
    "PAIR_ATTACKS",
    "QUICK",
    "WORLDS",
    "BenchmarkConfig",
    "Contestant",
    "Fitted",
    "Problem",
    "Standing",
    "contestants",
    "players",
    "prediction_scores",
    "read_problem",
    "run_benchmark",
    "standings",
]
