"""How labels of choices of one row name their options, beside `test_wide_choices.py`."""

import pytest

from robust_rlhf_jax.io import load_pairs


def choices(options, label, n=12):
    """The option that was chosen in row i, the i-th of them, has the price 9."""
    many = len(options)
    return [
        {f"price_{o}": 9 if k == i % many else k for k, o in enumerate(options)}
        | {f"time_{o}": (i * k) % 5 for k, o in enumerate(options)}
        | {"choice": label(i, options[i % many])}
        for i in range(n)
    ]


@pytest.mark.parametrize(
    ("options", "word"),
    [("123", "Option {}"), ("123", "alt{}"), ("ABC", "option {}"), ("ABC", "Product {}"), ("123", "{}")],
)
def test_words_before_an_options_number_or_letter_say_nothing(options, word):
    pairs = load_pairs(choices(options, lambda i, option: word.format(option)))
    assert pairs.n_pairs == 24
    assert (pairs.chosen[:, 0] == 9).all()


def test_words_that_are_part_of_the_columns_names_stay():
    pairs = load_pairs(choices(["plan1", "plan2", "plan3"], lambda i, option: option))
    assert (pairs.chosen[:, 0] == 9).all()


@pytest.mark.parametrize("none", [0, 4, "None"])
def test_a_label_that_many_rows_have_and_no_option_is_named(none):
    rows = choices("123", lambda i, option: option if i % 4 else none)
    with pytest.raises(
        ValueError, match=f"column choice holds '?{none}'? in many rows.* leave those rows out"
    ):
        load_pairs(rows)
    assert load_pairs([row for row in rows if row["choice"] != none]).n_pairs == 18
