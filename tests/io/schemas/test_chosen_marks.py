"""Options that are marked as chosen by words or ticks; `test_wild.py` reads these files, too."""

import random

import pytest
from wild import stores, worlds
from wild.case import Case

from robust_rlhf_jax.io import load_pairs

FEATURES = ("price", "time", "changes", "comfort", "delay")


def marked(yes, no):
    """Two rows of each choice, with a mark in the row of the chosen option."""

    def encode(items):
        return [
            {"task": i} | dict(zip(FEATURES, option, strict=True)) | {"chosen": yes if won else no}
            for i, item in enumerate(items)
            for option, won in ((item.a, item.vote > 0), (item.b, item.vote < 0))
        ]

    return encode


VOTED = {"world": worlds.voted_vectors, "facts": ()}
CASES = (
    Case("choices_marked_in_words", marked("chosen", "not chosen"), stores.table(), **VOTED),
    Case("choices_ticked", marked("x", ""), stores.table("choices.csv", ";"), **VOTED),
)


def rows(yes, no, n=20, m=3, order=None):
    draw = random.Random(0)
    found = []
    for task in range(n):
        best = draw.randrange(m)
        found += [
            {"task": task, "price": 100 * (j == best) + j, "selected": yes if j == best else no}
            for j in range(m)
        ]
    if order is not None:
        random.Random(order).shuffle(found)
    return found


@pytest.mark.parametrize("n", [20, 2000])
@pytest.mark.parametrize("order", [None, 1])
@pytest.mark.parametrize(
    ("yes", "no"),
    [
        ("chosen", "not chosen"),
        ("Selected", "Not selected"),
        ("x", ""),
        ("1", ""),
        (1, None),
        ("✓", None),
        ("yes", ""),
    ],
)
def test_the_marked_option_won(yes, no, n, order):
    found = load_pairs(rows(yes, no, n, order=order))
    assert found.names == ("price",)
    assert found.n_pairs == 2 * n
    assert (found.differences()[:, 0] > 90).all()


@pytest.mark.parametrize(("yes", "no"), [("first", "later"), ("x", "y"), ("2", "")])
def test_other_words_are_no_marks(yes, no):
    with pytest.raises(ValueError, match="chosen"):
        load_pairs(rows(yes, no))


def test_an_empty_cell_among_yes_and_no_says_neither():
    cells = rows(1, 0)
    for row in cells[3:6]:
        row["selected"] = None
    assert load_pairs(cells).n_pairs == 38
