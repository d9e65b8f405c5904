import itertools

import numpy as np
import pytest
from matplotlib import image
from matplotlib.colors import to_rgb

from robust_rlhf_jax.lab.sweeps.curves import COLOURS
from robust_rlhf_jax.lab.sweeps.figures import gap_vs_epsilon


def pixels(rows, path):
    gap_vs_epsilon(rows, path)
    assert path.read_bytes().startswith(b"\x89PNG")
    return image.imread(path)[..., :3]


def shows(picture, algorithm):
    """Whether the algorithm's own colour is somewhere."""
    distance = np.abs(picture - np.array(to_rgb(COLOURS[algorithm]))).max(axis=-1)
    return (distance < 0.01).sum() > 50


@pytest.fixture(scope="module")
def rows():
    """Two families × two attacks × two ε × two seeds of three algorithms, as a sweep's cells are."""
    algorithms = ("standard", "uniform_coverage", "clean_reference")
    cells = itertools.product(
        ("random", "chain"), ("push_features", "flip_confident"), (0.0, 0.2), (0, 1), algorithms
    )
    names = ("family", "attack", "epsilon", "seed", "algorithm")
    return [
        dict(zip(names, cell, strict=True)) | {"normalised_gap": 0.02 * number, "status": "converged"}
        for number, cell in enumerate(cells)
    ]


@pytest.mark.slow
def test_every_algorithm_of_the_sweep_is_drawn_and_no_other(rows, tmp_path):
    picture = pixels(rows, tmp_path / "all.png")
    ran = {row["algorithm"] for row in rows}
    assert {name for name in COLOURS if shows(picture, name)} == ran


def test_one_panel_per_family_and_attack(rows, tmp_path):
    four = pixels(rows, tmp_path / "four.png")
    one = [row for row in rows if (row["family"], row["attack"]) == ("chain", "push_features")]
    single = pixels(one, tmp_path / "one.png")
    assert four.shape[0] > 1.6 * single.shape[0]
    assert four.shape[1] > 1.6 * single.shape[1]


def test_a_breakdown_is_drawn_at_the_worst(rows, tmp_path):
    """NaN stands at gap 1, not nowhere: the picture is that of gap 1."""
    few = [row for row in rows if (row["family"], row["algorithm"]) == ("chain", "standard")]
    broken = pixels([row | {"normalised_gap": float("nan")} for row in few], tmp_path / "nan.png")
    worst = pixels([row | {"normalised_gap": 1.0} for row in few], tmp_path / "one.png")
    np.testing.assert_array_equal(broken, worst)
    assert shows(broken, "standard")


def test_a_cell_that_did_not_converge_is_drawn_hollow_with_a_line_below(rows, tmp_path):
    few = [row | {"status": "converged"} for row in rows if row["family"] == "chain"]
    clean = pixels(few, tmp_path / "clean.png")
    failed = pixels([row | {"status": "max_steps"} for row in few], tmp_path / "failed.png")
    assert (clean != failed).any()
    foot = slice(int(0.98 * len(failed)), None)
    assert clean[foot].min() == 1
    assert failed[foot].min() < 0.6
