"""Columns that may name who judged are told of, where no column is known to."""

import pytest

from robust_rlhf_jax.io import Columns, describe


def rows(n=20, **more):
    return [
        {"prompt": f"p{i}", "response_a": f"x {i}", "response_b": f"y {i}", "winner": "AB"[i % 2]}
        | {name: cells[i % len(cells)] for name, cells in more.items()}
        for i in range(n)
    ]


@pytest.mark.parametrize("n", [20, 5000])
@pytest.mark.parametrize(
    "name",
    [
        "subject",
        "username",
        "User Name",
        "created_by",
        "ResponseId",
        "IPAddress",
        "email",
        "Teilnehmernummer",
    ],
)
@pytest.mark.parametrize("people", [("p1", "p2", "p3"), (11, 12, 13)])
def test_a_column_that_may_name_raters_is_told_of_with_its_flag(name, people, n):
    (note,) = (note for note in describe(rows(n, **{name: people})).notes if "--rater" in note)
    assert note.startswith(f"Column {name}, which is ignored, holds 3 names that recur")
    found = describe(rows(n, **{name: people}), columns=Columns(rater=name))
    assert found.n_raters == 3
    assert not any("--rater" in note for note in found.notes)


@pytest.mark.parametrize(
    "more",
    [{"subject": ["maths"]}, {"subject": [f"s{i}" for i in range(20)]}, {"email": ["a long text " * 9, "another " * 9]},
     {"name": [0.25, 0.5]}, {"username": ["a", "b"], "rater": ["r", "s"]}, {"topic": ["a", "b"]}],
)  # fmt: skip
def test_what_hardly_recurs_is_the_same_or_stands_beside_raters_is_not(more):
    assert not any("--rater" in note for note in describe(rows(**more)).notes)
