"""Numbers and words that may stand for a missing value are told of, and used as they are."""

import numpy as np
import pytest

from robust_rlhf_jax import load
from robust_rlhf_jax.io import describe, load_pairs
from robust_rlhf_jax.io.missing_codes import codes_among


def ages(code: float, n: int, seed: int = 0) -> np.ndarray:
    values = np.random.default_rng(seed).integers(18, 91, n).astype(float)
    values[: max(3, n // 12)] = code
    return values


def rows_of(values: np.ndarray, names=("age_1", "age_2")) -> list[dict]:
    half = len(values) // 2
    return [
        {names[0]: a, names[1]: b, "time_1": i % 7, "time_2": i % 5, "choice": 1 + i % 2}
        for i, (a, b) in enumerate(zip(values[:half].tolist(), values[half:].tolist(), strict=True))
    ]


@pytest.mark.parametrize("n", [40, 10000])
@pytest.mark.parametrize("code", [-1, -9, -99, -999, 999, 9999])
def test_a_code_far_from_all_other_numbers_is_told_of(code, n):
    rows = rows_of(ages(code, n))
    said = f"{max(3, n // 12):,} cells of age are {code:g}, far from all others: if that is a code for a missing value"
    found = [note for note in describe(rows).notes if "missing" in note]
    assert len(found) == 1
    assert found[0].startswith(said)
    assert len(load_pairs(rows).chosen) == n // 2


LEVELS = (
    (99, 199, 999), (49, 99, 199, 999), (-1, 0, 1), (-1, 1), (0, 1, 99), (9.9, 99, 999), (-2, -1, 1, 2), (1, 2, 3),
    (-99, -50, 0, 50), (-1, -3, 4, 9), (97, 98, 99, 100),
)  # fmt: skip


@pytest.mark.parametrize("levels", LEVELS)
def test_levels_of_a_design_are_no_codes(levels):
    assert codes_among(np.random.default_rng(1).choice(np.array(levels, float), 600)) == []


def test_a_single_odd_number_is_no_code():
    assert codes_among(np.array([-99.0, *range(18, 90)])) == []


def test_an_age_of_99_is_no_code():
    assert codes_among(ages(99, 400)) == []


def test_codes_of_scores_are_told_of():
    rows = [
        {
            "prompt": f"p {i}",
            "response": f"{who} {i}",
            "score": -99 if who == "y" and i % 9 == 0 else 1 + i % 5,
        }
        for i in range(60)
        for who in ("x", "y")
    ]
    assert any(note.startswith("7 cells of score are -99, far from") for note in describe(rows).notes)


def test_a_file_says_it_when_it_is_loaded(tmp_path):
    lines = ["chosen_age,rejected_age", *(f"{a:g},{b:g}" for a, b in ages(-99, 200).reshape(-1, 2))]
    (tmp_path / "pairs.csv").write_text("\n".join(lines))
    assert any("cells of age are -99" in note for note in load(tmp_path / "pairs.csv").description.notes)


@pytest.mark.parametrize("cell", ["NULL", "NA", "nan", "N/A", "[deleted]"])
def test_answers_that_are_words_for_nothing_are_told_of(cell):
    rows = [
        {"prompt": f"p {i}", "chosen": cell if i in (2, 5) else f"x {i}", "rejected": f"y {i}"}
        for i in range(9)
    ]
    said = f"2 pairs have an answer that is {cell!r}: if that means that there was none, empty those cells"
    assert any(note.startswith(said) for note in describe(rows).notes)
    assert load_pairs(rows, featuriser="format").texts.chosen.count(cell) == 2
    assert not [note for note in describe(rows[6:]).notes if "an answer that is" in note]
