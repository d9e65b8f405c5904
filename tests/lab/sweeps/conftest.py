"""One small sweep that the tests of this folder share: compiling it is nearly all of their time."""

import jax
import pytest

from robust_rlhf_jax.lab.sweeps import SweepConfig, run_sweep
from robust_rlhf_jax.lab.sweeps.families import PRESETS, build_worlds


@pytest.fixture(scope="session")
def small_config():
    """Two worlds of different shapes, and lanes that fill neither the cells of an attack nor the data sets."""
    return SweepConfig(
        preset="tiny",
        families=("random", "chain"),
        attacks=("push_features", "flip_confident"),
        epsilons=(0.0, 0.2),
        seeds=2,
        algorithms=("standard", "low_leverage", "clean_reference"),
        n_pairs=600,
        lanes=3,
    )


@pytest.fixture(scope="session")
def small_sweep(small_config):
    """(result, [(cells, how many of them were free)] as reported)."""
    reported = []
    return run_sweep(small_config, lambda cells, free: reported.append((cells, free))), reported


@pytest.fixture(scope="session")
def tiny_worlds():
    """Family name → world."""
    names = tuple(PRESETS["tiny"].every)
    return dict(zip(names, build_worlds("tiny", names, jax.random.key(0)), strict=True))
