import itertools

import numpy as np
import pytest
from matplotlib import image
from matplotlib.colors import to_rgb
from slow_parameters import slow

from robust_rlhf_jax.lab.methods import METHODS
from robust_rlhf_jax.lab.sweeps import figures
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


@pytest.mark.slow
def test_a_cell_that_did_not_converge_is_drawn_hollow_with_a_line_below(rows, tmp_path):
    few = [row | {"status": "converged"} for row in rows if row["family"] == "chain"]
    clean = pixels(few, tmp_path / "clean.png")
    failed = pixels([row | {"status": "max_steps"} for row in few], tmp_path / "failed.png")
    assert (clean != failed).any()
    foot = slice(int(0.98 * len(failed)), None)
    assert clean[foot].min() == 1
    assert failed[foot].min() < 0.6


@pytest.mark.parametrize(
    "algorithms", [("standard", "robust_policy", "clean_reference"), slow(tuple(METHODS))]
)
def test_a_legend_wider_than_the_panels_takes_more_rows(algorithms, rows, tmp_path):
    """Its entries stand within the picture, whose borders stay white, and none of them on a panel."""
    one = [row | {"normalised_gap": 0.5} for row in rows if row["family"] == "chain"]
    one = [row for row in one if (row["attack"], row["algorithm"]) == ("push_features", "standard")]
    single = pixels(one, tmp_path / "single.png")
    several = pixels([row | {"algorithm": name} for row in one for name in algorithms], tmp_path / "all.png")
    assert min(border.min() for border in (several[0], several[:, 0], several[:, -1])) == 1
    assert several.shape[1] == single.shape[1]
    extra = len(several) - len(single)
    assert extra > 20
    np.testing.assert_array_equal(several[-60:], single[-60:])  # the axis and its label, below the curves


def test_one_fraction_is_the_one_tick(rows, tmp_path, monkeypatch):
    """Between ticks of .198 and .202 nobody can tell where the points are."""
    drawn = []
    monkeypatch.setattr(figures, "save", lambda figure, *_: drawn.append(figure))
    gap_vs_epsilon([row for row in rows if row["epsilon"] == 0.2], tmp_path / "one.png")
    assert {tuple(axis.get_xticks()) for axis in drawn[0].axes} == {(0.2,)}
