"""Rows that say of themselves that they may be no judgements are counted."""

import pytest

from robust_rlhf_jax.io import describe


def rows(name, marked, other, n=20):
    return [
        {"prompt": f"p{i}", "chosen": f"x {i}", "rejected": f"y {i}", name: other if i % 5 else marked}
        for i in range(n)
    ]


def said_of(found):
    return [note for note in describe(found).notes if "marked" in note]


@pytest.mark.parametrize("n", [20, 5000])
@pytest.mark.parametrize(
    ("name", "marked", "other"),
    [("exclude", True, False), ("Attention Check", "yes", "no"), ("is_practice", 1, 0), ("is_valid", 0, 1),
     ("Finished", "False", "True"), ("passed_attention_check", "nein", "ja"),
     ("Status", "Survey Preview", "IP Address"),
     ("DistributionChannel", "preview", "anonymous"), ("trial_type", "practice", "main"), ("isSpam", True, False)],
)  # fmt: skip
def test_rows_that_are_marked_are_counted(name, marked, other, n):
    (note,) = said_of(rows(name, marked, other, n))
    assert note.startswith(f"{n // 5:,} of {n:,} rows are marked by column {name} (")
    assert note.endswith("leave them out if they are no judgements.")


@pytest.mark.parametrize(
    ("name", "marked", "other"),
    [("exclude", False, False), ("valid", True, True), ("status", "done", "open"), ("status", "practice", "practice"),
     ("trial_type", "main", "other"), ("excluded_words", "yes", "no"), ("include", "a", "b"), ("spam", 3, 4)],
)  # fmt: skip
def test_where_all_rows_say_the_same_or_something_else_nothing_is(name, marked, other):
    assert not said_of(rows(name, marked, other))
