"""Sweeps over ε × attacks × families × seeds × algorithms, batched in one program per algorithm."""

from .command import sweep_command
from .config import SweepConfig
from .config_file import config_toml, read_config
from .engine import SweepResult, run_sweep

__all__ = ["SweepConfig", "SweepResult", "config_toml", "read_config", "run_sweep", "sweep_command"]
