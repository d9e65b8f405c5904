"""Features of words: one for each, in every table of numbers, where they are asked for."""

import numpy as np
import pytest

from robust_rlhf_jax import fit_reward
from robust_rlhf_jax.io import Columns, describe, load_pairs

BRANDS = ("bmw", "ford", "kia")
WORTH = {"bmw": 1.5, "ford": 0.0, "kia": -1.5}
WORDS = Columns(words=True)


def choices(n=300, seed=0):
    """(first option, second option, whether the first is chosen) of price, brand and automatic gear."""
    rng = np.random.default_rng(seed)
    draw = lambda: (int(rng.integers(1, 9)), str(rng.choice(BRANDS)), bool(rng.random() < 0.5))  # noqa: E731
    worth = lambda option: -0.3 * option[0] + WORTH[option[1]] + option[2]  # noqa: E731
    for _ in range(n):
        a, b = draw(), draw()
        yield a, b, bool(rng.logistic() < worth(a) - worth(b))


NAMES = ("price", "brand", "auto")


def numbered(items):
    columns = [f"{name}_{side}" for side in (1, 2) for name in NAMES]
    return [
        dict(zip(columns, (*a, *b), strict=True)) | {"choice": 1 if first else 2} for a, b, first in items
    ]


def preferred(items):
    columns = [f"{side}_{name}" for side in ("chosen", "rejected") for name in NAMES]
    return [dict(zip(columns, (*a, *b) if first else (*b, *a), strict=True)) for a, b, first in items]


def in_rows(items):
    return [
        {"task": i} | dict(zip(NAMES, option, strict=True)) | {"chosen": int(chosen)}
        for i, (a, b, first) in enumerate(items)
        for option, chosen in ((a, first), (b, not first))
    ]


@pytest.mark.parametrize("write", [numbered, preferred, in_rows])
def test_every_table_gives_the_same_features(write):
    items = list(choices())
    pairs = load_pairs(write(items), columns=WORDS)
    assert pairs.names == ("price", "brand=ford", "brand=kia", "auto=True")
    row = lambda option: [option[0], *(option[1] == brand for brand in BRANDS[1:]), option[2]]  # noqa: E731
    expected = [np.subtract(row(a), row(b), dtype=float) * (1 if first else -1) for a, b, first in items]
    np.testing.assert_array_equal(pairs.labels[:, None] * pairs.differences(), expected)


@pytest.mark.parametrize("write", [numbered, preferred, in_rows])
def test_unasked_they_are_ignored_and_the_flag_is_named(write):
    found = describe(write(list(choices())))
    assert found.roles["features"].startswith("1 numeric")
    brands = [why for name, why in found.ignored.items() if "brand" in name]
    assert brands
    assert all("--words" in why for why in brands)


@pytest.mark.slow
def test_the_reward_has_the_worth_of_every_word():
    pairs = load_pairs(preferred(choices(4_000)), columns=WORDS)
    theta = dict(zip(pairs.names, np.asarray(fit_reward(pairs, 0).theta), strict=True))
    assert abs(theta["brand=kia"] - (WORTH["kia"] - WORTH["bmw"])) < 5 * 0.12
    assert abs(theta["auto=True"] - 1.0) < 5 * 0.08


def test_columns_of_words_alone_will_do():
    rows = [{"chosen_brand": "kia", "rejected_brand": brand} for brand in ("bmw", "ford", "bmw", "ford")]
    assert load_pairs(rows, columns=WORDS).names == ("brand=ford", "brand=kia")
    with pytest.raises(ValueError, match="--words"):
        load_pairs(rows)


def test_a_missing_word_is_a_bad_cell():
    rows = preferred(choices(20))
    rows[4]["rejected_brand"] = None
    with pytest.raises(ValueError, match=r"row 5.*rejected_brand"):
        load_pairs(rows, columns=WORDS)
    assert load_pairs(rows, columns=WORDS, skip_bad=1).n_pairs == 19


def test_a_missing_word_is_named_by_the_column_of_the_file():
    rows = preferred(choices(20))
    rows[4]["rejected_brand"] = None
    found = load_pairs(rows, columns=WORDS, skip_bad=1)
    assert {cell.sentence for cell in found.bad} == {"row 5, column rejected_brand is missing"}


def test_what_differs_in_every_row_is_no_word():
    rows = [
        row | {"chosen_note": f"note {i}", "rejected_note": f"not {i}"}
        for i, row in enumerate(preferred(choices(20)))
    ]
    assert not any("note" in name for name in load_pairs(rows, columns=WORDS).names)


def test_texts_have_no_words():
    rows = [{"prompt": "Hi", "chosen": "Hello!", "rejected": "What?"}]
    with pytest.raises(ValueError, match="--words reads words beside numbers"):
        load_pairs(rows, columns=WORDS)
