"""A log in which later rows of the same rater and pair correct earlier ones is told of."""

import pytest

from robust_rlhf_jax.io import describe


def log(n, corrected, **more):
    rows = [
        {"id": i, "prompt": f"p{i}", "response_a": f"x {i}", "response_b": f"y {i}", "winner": "AB"[i % 2]}
        | {"annotator": f"w{i % 3}"}
        for i in range(n)
    ]
    return rows + [rows[i] | {"winner": "BA"[i % 2]} | more for i in corrected]


def said_of(rows):
    return [note for note in describe(rows).notes if "contradict" in note]


@pytest.mark.parametrize("n", [20, 5000])
def test_judgements_that_later_ones_contradict_are_counted(n):
    (note,) = said_of(log(n, range(0, n, 5)))
    assert note.startswith(
        f"{n // 5:,} judgements contradict an earlier one of the same pair by the same rater"
    )
    assert f"such as rows 1 and {n + 1}," in note
    assert note.endswith("keep the last row of each alone.")


def test_sides_may_stand_the_other_way_round():
    rows = log(20, [])
    again = rows[0] | {"response_a": rows[0]["response_b"], "response_b": rows[0]["response_a"]}
    assert said_of([*rows, again])[0].startswith("1 judgement contradicts")
    assert not said_of([*rows, again | {"winner": "B"}])


@pytest.mark.parametrize(
    "more", [{"annotator": "w9"}, {"winner": "A"}, {"annotator": None}, {"prompt": "other"}]
)
def test_other_raters_results_and_pairs_are_no_corrections(more):
    assert not said_of(log(20, [0], **more))


def test_a_tie_corrects_too():
    assert said_of(log(20, [0], winner="tie"))


@pytest.mark.parametrize("n", [20, 5000])
def test_copies_of_a_raters_judgements_are_counted(n):
    rows = log(n, [])
    (note,) = (note for note in describe(rows + rows[: n // 4]).notes if "copies" in note)
    assert note.startswith(f"{n // 4:,} pairs repeat an earlier one with the same result, by the same rater")
    assert not any("repeat" in note for note in describe(rows).notes)
