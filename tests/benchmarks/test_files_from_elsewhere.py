"""Tables of choices as pairs, and the line that the study prints of them."""

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def files():
    import choice_files

    return choice_files


def test_a_choice_stands_beside_one_that_was_not_made(files):
    features = np.arange(24.0).reshape(4, 3, 2)
    chosen = np.array([0, 1, 2, 1])
    pairs = files.as_pairs(files.Choices(features, chosen, np.array(list("abab"))))
    np.testing.assert_array_equal(pairs.chosen, features[np.arange(4), chosen])
    others = [features[i, np.arange(3) != c] for i, c in enumerate(chosen)]
    assert all(
        any((rejected == o).all() for o in each)
        for rejected, each in zip(pairs.rejected, others, strict=True)
    )
    assert pairs.raters.tolist() == list("abab")


def test_columns_are_attributes_of_alternatives_and_constants(files):
    table = pd.DataFrame({"price.a": [1, 2], "price.b": [3, 4], "choice": ["b", "a"], "id": [7, 8]})
    found = files._brands("a b", "price")(table)
    np.testing.assert_array_equal(found.features, [[[1, 0], [3, 1]], [[2, 0], [4, 1]]])
    assert found.chosen.tolist() == [1, 0]
    assert found.people.tolist() == [7, 8]


def test_rows_of_travellers_are_put_together(files):
    table = pd.DataFrame({name: range(8) for name in ("ttme", "invc", "invt", "gc")})
    table = table.assign(mode=[0, 0, 1, 0, 1, 0, 0, 0], hinc=[10] * 4 + [30] * 4)
    found = files._travel(table)
    assert found.features.shape == (2, 4, 4 + 3 + 3)
    assert found.chosen.tolist() == [2, 0]
    np.testing.assert_array_equal(found.features[:, 2, :4], [[2] * 4, [6] * 4])
    np.testing.assert_allclose(found.features[:, 1, 7:], [[-1, 0, 0], [1, 0, 0]])


def test_kinds_of_cars_are_indicators(files):
    names = ("price", "range", "acc", "speed", "pollution", "size", "space", "cost", "station")
    table = pd.DataFrame({f"{name}{i}": [i, i] for name in names for i in range(1, 7)})
    table = table.assign(**{f"type{i}": ["van" if i == 1 else "car"] * 2 for i in range(1, 7)})
    table = table.assign(**{f"fuel{i}": ["gas", "cng"] for i in range(1, 7)}, choice=["choice1", "choice6"])
    found = files._cars(table)
    assert found.chosen.tolist() == [0, 5]
    np.testing.assert_array_equal(found.features[0, 0], [*[1] * 9, 1, 1])
    np.testing.assert_array_equal(found.features[1, 5], [*[6] * 9, 0, 0])


def test_heating_that_cools_costs_the_cooling_too(files):
    systems = ("gcc", "ecc", "erc", "hpc", "gc", "ec", "er")
    table = pd.DataFrame({f"{a}h.{s}": [100.0] for a in ("ic", "oc") for s in systems})
    found = files._heating_and_cooling(table.assign(icca=20.0, occa=3.0, depvar="er"))
    np.testing.assert_array_equal(found.features[0, :, :2], [[120, 103]] * 4 + [[100, 100]] * 3)
    assert found.chosen.tolist() == [6]


def test_a_line_counts_the_attacks_under_which_the_plain_fit_is_better(files):
    import files_from_elsewhere as study

    fits = [study.PLAIN, study.TOLD, study.UNTOLD]
    cells = pd.concat(
        {
            "accuracy": pd.DataFrame(
                [[0.8] * 3, [0.7, 0.8, 0.6], [0.7, 0.7, 0.695]], ["none", "far", "near"], fits
            ),
            "log_loss": pd.DataFrame(
                [[0.5] * 3, [0.6, 0.5, 0.7], [0.6, 0.6, 0.64]], ["none", "far", "near"], fits
            ),
        },
        axis=1,
    )
    pairs = files.as_pairs(files.Choices(np.zeros((3, 2, 4)), np.zeros(3, int)))
    line = study.row("toy", pairs, study.Harm(-0.001, 0.002, 0), cells)
    assert line == (
        "| toy | 3 | — | 4 | 0 | -0.001 | +0.002 | .800 | .700 | .750 | .647 | 0 / 1 of 2 | 0 / 1 of 2 |"
    )
    assert len(study.COLUMNS) == line.count(" | ") + 1
