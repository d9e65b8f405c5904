"""A column for each place of a ranking, which names an answer or gives its number."""

import pytest

from robust_rlhf_jax.io import Columns, load_pairs

ORDINALS = ("1st", "2nd", "3rd", "4th")


@pytest.mark.parametrize(
    "columns",
    [[f"rank_{i}" for i in range(1, 5)], [f"Rank {i}" for i in range(1, 5)], [f"{i} choice" for i in ORDINALS],
     [f"{i}_place" for i in ("first", "second", "third", "fourth")]],
)  # fmt: skip
@pytest.mark.parametrize("name", ["{}", "Response {}"])
def test_a_column_for_each_place_names_the_answer_that_stands_there(columns, name):
    made = [
        {f"response_{letter}": f"{letter} {i}" for letter in "abcd"}
        | {column: name.format("CADB"[(k + i) % 4]) for k, column in enumerate(columns)}
        for i in range(8)
    ]
    found = load_pairs(made, featuriser="format")
    pairs = zip(found.texts.chosen, found.texts.rejected, found.rows, strict=True)
    won = {(a[0], b[0]) for a, b, row in pairs if row == 0}
    assert won == {("c", "a"), ("c", "d"), ("c", "b"), ("a", "d"), ("a", "b"), ("d", "b")}
    assert len(found.labels) == 6 * 8


def of_numbers(orders, stem="rank_", first=1):
    """`orders`: of each row the answers from the best to the worst, counted from 0."""
    return [
        {"prompt": f"p {i}"}
        | {f"response_{k + first}": f"{'abcd'[k]} {i}" for k in range(len(order))}
        | {f"{stem}{k + first}": order[k] + first for k in range(len(order))}
        for i, order in enumerate(orders)
    ]


@pytest.mark.parametrize("stem", ["rank_", "Rank ", "place_"])
@pytest.mark.parametrize("first", [0, 1])
def test_numbers_in_places_that_are_called_as_answers_are_asked_about(stem, first):
    rows = of_numbers([(2, 0, 1), (0, 1, 2)] * 4, stem, first)
    with pytest.raises(
        ValueError, match=rf"columns {stem}{first} to {stem}{first + 2} could .* --ranking order"
    ):
        load_pairs(rows, featuriser="format")
    for ranking, best in (("order", "acc"), ("ranks", "bbc")):
        found = load_pairs(rows, columns=Columns(ranking=ranking), featuriser="format")
        assert "".join(sorted(text[0] for text in found.texts.chosen[:3])) == best


def test_numbers_that_mean_the_same_in_places_and_as_ranks_are_read():
    """Two answers, places that are their own inverse, equal ranks, and scores beside."""
    for rows in (
        of_numbers([(1, 0), (0, 1)] * 4),
        of_numbers([(1, 0, 2), (2, 1, 0)] * 4),
        [row | {"rank_1": 1, "rank_2": 1} for row in of_numbers([(2, 0, 1)] * 8)],
        [
            row | {f"score_{row[f'rank_{k}']}": 9 - k for k in (1, 2, 3)}
            for row in of_numbers([(2, 1, 0)] * 8)
        ],
    ):
        assert load_pairs(rows, featuriser="format").n_pairs
