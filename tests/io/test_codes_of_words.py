"""Whole numbers of a feature called after words, such as a brand, may be codes."""

import random

import pytest

from robust_rlhf_jax.io import describe


def notes_of(name, codes, n=20):
    draw = random.Random(0)
    rows = [
        {
            f"{what}_{side}": draw.choice(values)
            for side in "ab"
            for what, values in (("price", range(50)), (name, codes))
        }
        | {"choice": draw.choice("ab")}
        for _ in range(n)
    ]
    return [note for note in describe(rows).notes if "codes" in note]


@pytest.mark.parametrize("n", [20, 5000])
@pytest.mark.parametrize("name", ["brand", "Colour", "country", "airline", "Farbe", "seller"])
def test_codes_of_words_are_told_of(name, n):
    assert notes_of(name, range(1, 5), n) == [
        f"{name} holds the whole numbers 1 to 4, read as amounts: if they are codes, write the words and give --words."
    ]


@pytest.mark.parametrize(
    ("name", "codes"),
    [("stars", range(1, 6)), ("brand", (0, 1)), ("brand", (0.5, 1.5, 2.5)), ("brand", range(100, 200)),
     ("rooms", range(5))],
)  # fmt: skip
def test_amounts_and_two_values_are_not(name, codes):
    assert not notes_of(name, codes)
