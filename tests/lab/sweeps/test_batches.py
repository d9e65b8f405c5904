"""Batches: every cell once, the reference once, and every device's run of lanes alike."""

from collections import Counter

import numpy as np
import pytest

from robust_rlhf_jax.lab.sweeps import SweepConfig, run_sweep
from robust_rlhf_jax.lab.sweeps.batches import NO_ATTACK, groups
from robust_rlhf_jax.lab.sweeps.programs import REFERENCE

CONFIG = SweepConfig(
    families=("random", "chain", "gridworld"), attacks=("push_features",), epsilons=(0.0, 0.2), seeds=4
)


@pytest.mark.parametrize("size", [1, 5, 12, 100])
def test_every_cell_stands_in_one_batch(size):
    counts = Counter()
    for group in groups(CONFIG, size):
        lanes = group.lanes
        assert 1 <= len(lanes.seed) <= size
        np.testing.assert_array_equal(lanes.dataset, lanes.family * CONFIG.seeds + lanes.seed)
        cells = zip(lanes.family.tolist(), lanes.seed.tolist(), lanes.epsilons.tolist(), strict=True)
        counts.update((group.attack, *cell, name) for cell in cells for name in group.algorithms)
    others = len(CONFIG.algorithms) - (REFERENCE in CONFIG.algorithms)
    assert set(counts.values()) == {1}
    assert len(counts) == 12 * 2 * others + 12 * (REFERENCE in CONFIG.algorithms)
    assert all((attack == NO_ATTACK) == (epsilon == 0) for attack, *_, epsilon, _ in counts)


@pytest.mark.slow
def test_cells_without_attack_stand_under_every_attack():
    config = SweepConfig(
        "tiny", ("random",), ("push_features", "flip_confident"), (0.0, 0.2), 2, ("standard", REFERENCE)
    )
    rows = run_sweep(config).rows
    cells = Counter((row["attack"], row["epsilon"], row["seed"], row["algorithm"]) for row in rows)
    assert len(rows) == config.n_cells == len(cells)
    gaps = {(r["attack"], r["seed"], r["algorithm"]): r["normalised_gap"] for r in rows if r["epsilon"] == 0}
    for seed in range(2):
        assert len({gaps[attack, seed, name] for attack in config.attacks for name in config.algorithms}) == 1


@pytest.mark.parametrize("devices", [2, 4])
def test_every_device_gets_all_families_alike(devices):
    """Worlds differ in what they cost: a device with the expensive ones alone would be waited for."""
    for group in groups(CONFIG, 12):
        for run in np.split(group.lanes.family, devices):
            assert len(set(np.bincount(run, minlength=3))) == 1
