"""Rows that a platform's file says were rejected."""

import pytest

from robust_rlhf_jax.io import describe

ROWS = [
    {"prompt": f"Tea {i}?", "response_a": f"Yes, {i}.", "response_b": "No.", "winner": "ab"[i % 2]}
    for i in range(5)
]


def notes(column, cells, **reading):
    rows = [row | {column: cell} for row, cell in zip(ROWS, cells, strict=True)]
    return [note for note in describe(rows, **reading).notes if "rejected" in note]


@pytest.mark.parametrize("column", ["AssignmentStatus", "ASSIGNMENT:status"])
def test_a_note_says_how_many(column):
    (said,) = notes(column, ["Approved", "Rejected", "REJECTED", None, "Submitted"])
    assert said.startswith(f"2 rows were rejected ({column}) and count like the others: leave them out")


def test_there_is_no_note_without_them():
    assert not notes("AssignmentStatus", ["Approved"] * 5)
    assert not notes("status", ["Rejected"] * 5)


def test_rows_that_are_skipped_are_not_counted():
    rows = [row | {"AssignmentStatus": "Rejected"} for row in ROWS]
    rows[2]["winner"] = "nobody knows"
    assert any(note.startswith("4 rows were rejected") for note in describe(rows, skip_bad=1).notes)
