"""A small sweep of one-cell parts for the tests of engines, and the command that runs it."""

import sys
import time

from robust_rlhf_jax.lab.sweeps import SweepConfig

COMMAND = [sys.executable, "-c", "from robust_rlhf_jax.cli import main; main()"]


def small_sweep(seeds: int) -> SweepConfig:
    """Two cells per seed."""
    return SweepConfig(
        preset="tiny",
        families=("chain",),
        attacks=("flip_confident",),
        epsilons=(0.0, 0.2),
        seeds=seeds,
        algorithms=("standard",),
        n_pairs=600,
        lanes=1,
    )


def wait_for(what, seconds=120.0):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.01)
