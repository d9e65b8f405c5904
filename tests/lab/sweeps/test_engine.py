import dataclasses
import itertools

import jax
import numpy as np
import pytest

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.lab.sweeps import SweepConfig, run_sweep

AXES = ("family", "attack", "epsilon", "seed", "algorithm")


def cells(rows):
    """(family, attack, ε, seed, algorithm) → row."""
    return {tuple(row[axis] for axis in AXES): row for row in rows}


def test_every_cell_has_one_row(small_config, small_sweep):
    rows = small_sweep[0].rows
    c = small_config
    wanted = itertools.product(c.families, c.attacks, c.epsilons, range(c.seeds), c.algorithms)
    assert set(cells(rows)) == set(wanted)
    assert len(rows) == c.n_cells == 2 * 2 * 2 * 2 * 3


def test_batches_report_every_cell_once(small_config, small_sweep):
    reported = small_sweep[1]
    assert sum(cells for cells, _ in reported) == small_config.n_cells
    # Chunks of 3. Four cells without attack: the reference's stand in 2 x 2 cells, the others' under both attacks. Then
    # four cells for each attack and algorithm.
    untouched = [(12, 9), (6, 3), (6, 3), (4, 3), (2, 1), (2, 1)]
    assert reported == untouched + [(n, 0) for n in [3, 3, 1, 1] * 2]


def test_columns_are_plain_and_in_range(small_sweep):
    names = {status.name.lower() for status in Status}
    for row in small_sweep[0].rows:
        assert list(row) == [*AXES, "normalised_gap", "value", "status", "oracle_calls"]
        assert type(row["seed"]) is int
        assert type(row["value"]) is float
        assert -1e-4 <= row["normalised_gap"] <= 1 + 1e-4
        assert row["status"] in names
        assert row["status"] != "nonfinite"


def test_gap_falls_as_the_value_rises(small_sweep):
    """Within a world the gap is the value in other units."""
    for family in ("random", "chain"):
        rows = [row for row in small_sweep[0].rows if row["family"] == family]
        gaps, values = (np.array([row[name] for row in rows]) for name in ("normalised_gap", "value"))
        assert np.ptp(gaps) > 0.1
        slope, offset = np.polyfit(values, gaps, 1)
        assert slope < 0
        np.testing.assert_allclose(slope * values + offset, gaps, atol=1e-4)


def test_without_corruption_all_attacks_and_the_reference_agree(small_sweep):
    """They saw the same draws: data depend on family and seed alone."""
    found = cells(small_sweep[0].rows)
    for family, seed in itertools.product(("random", "chain"), range(2)):
        gaps = [
            found[family, attack, 0.0, seed, name]["normalised_gap"]
            for attack in ("push_features", "flip_confident")
            for name in ("standard", "clean_reference")
        ]
        np.testing.assert_allclose(gaps, gaps[0], atol=1e-5)


def test_the_reference_knows_no_attack(small_sweep):
    found = cells(small_sweep[0].rows)
    for family, seed in itertools.product(("random", "chain"), range(2)):
        gaps = {
            found[family, attack, epsilon, seed, "clean_reference"]["normalised_gap"]
            for attack in ("push_features", "flip_confident")
            for epsilon in (0.0, 0.2)
        }
        assert len(gaps) == 1


def test_seeds_are_different_data(small_sweep):
    found = cells(small_sweep[0].rows)
    values = [found["random", "push_features", 0.2, seed, "low_leverage"]["value"] for seed in range(2)]
    assert values[0] != values[1]


def test_planted_evidence_misleads_plain_rlhf_only(small_sweep):
    found = cells(small_sweep[0].rows)
    plain, robust = (
        np.mean([found["random", "push_features", 0.2, seed, name]["normalised_gap"] for seed in range(2)])
        for name in ("standard", "low_leverage")
    )
    assert robust < plain - 0.2


def test_label_entropy_per_family(small_sweep):
    entropy = small_sweep[0].label_entropy
    assert list(entropy) == ["random", "chain"]
    assert all(0.0 < bits < 1.0 for bits in entropy.values())


@pytest.fixture(scope="module")
def whole_batches(small_config):
    """The same cells of plain RLHF under one attack, in one batch."""
    config = dataclasses.replace(small_config, attacks=("push_features",), algorithms=("standard",), lanes=24)
    return config, run_sweep(config)


@pytest.mark.slow
def test_batch_size_and_other_cells_change_no_bit(small_sweep, whole_batches):
    """Against lanes = 3: lanes = 24, and lanes = 1 in a sweep of half the seeds. On CPU, where cells run one by one."""
    config, whole = whole_batches
    expected = cells(small_sweep[0].rows)
    few = run_sweep(dataclasses.replace(config, lanes=1, seeds=1))
    assert (len(whole.rows), len(few.rows)) == (8, 4)
    for key, row in [*cells(whole.rows).items(), *cells(few.rows).items()]:
        if jax.default_backend() == "cpu":
            assert row == expected[key]
        np.testing.assert_allclose(row["normalised_gap"], expected[key]["normalised_gap"], atol=1e-3)


@pytest.mark.slow
def test_the_seed_decides_everything(whole_batches):
    config, first = whole_batches
    assert run_sweep(config) == first
    other = run_sweep(dataclasses.replace(config, seed=1))
    assert [row["value"] for row in other.rows] != [row["value"] for row in first.rows]


def test_wrong_settings_stop_before_the_first_batch(small_config):
    reported = []
    with pytest.raises(ValueError, match="outside"):
        run_sweep(dataclasses.replace(small_config, epsilons=(0.5,)), lambda *batch: reported.append(batch))
    assert reported == []


@pytest.mark.slow
def test_families_that_are_not_alike_are_swept_as_if_alone():
    config = SweepConfig(
        "quick", ("gridworld", "random"), ("flip_random",), (0.0, 0.2), 1, ("standard",), n_pairs=60
    )
    cells = []
    found = run_sweep(config, lambda n, free: cells.append(n))
    alone = [run_sweep(dataclasses.replace(config, families=(name,))) for name in config.families]
    assert tuple(found.label_entropy) == config.families
    assert found.label_entropy == alone[0].label_entropy | alone[1].label_entropy
    assert sorted(map(str, found.rows)) == sorted(map(str, alone[0].rows + alone[1].rows))
    assert sum(cells) == config.n_cells
