"""A tick for each option of a choice in one row; `test_wild.py` and its neighbours read the files of `CASES`, too."""

import numpy as np
import pytest
from wild import stores, worlds
from wild.case import Case
from wild.chosen import each

from robust_rlhf_jax.io import describe, load_pairs

FEATURES = ("price", "time", "changes", "comfort", "delay")
VOTED = {"world": worlds.voted_vectors, "facts": ("row",)}
OPTIONS = ("car", "bus", "rail")
BEST = np.random.default_rng(3).integers(0, 3, 24)


def _both(item):
    both = (("bus", item.a), ("car", item.b))
    return {f"{feature}_{option}": values[k] for k, feature in enumerate(FEATURES) for option, values in both}


@each
def ticked(i, item):
    return _both(item) | {"choice_bus": int(item.vote > 0), "choice_car": int(item.vote < 0)}


@each
def chosen_before(i, item):
    return _both(item) | {
        "bus_chosen": "yes" if item.vote > 0 else "",
        "car_chosen": "yes" if item.vote < 0 else "",
    }


CASES = (
    Case("ticked_options", ticked, stores.table(), **VOTED),
    Case("ticked_options_before", chosen_before, stores.parquet(), **VOTED),
)


def three(name="{}_{}", tick="choice", options=OPTIONS):
    """Three options a row, by price and time."""
    return [
        {"trip": f"t{i}"}
        | {name.format("price", o): 3 + (5 * i + 7 * k) % 11 for k, o in enumerate(options)}
        | {name.format("time", o): 1 + (3 * i + 2 * k) % 7 for k, o in enumerate(options)}
        | {name.format(tick, o): int(k == BEST[i]) for k, o in enumerate(options)}
        for i in range(24)
    ]


@pytest.mark.parametrize(
    ("name", "tick", "options"),
    [
        ("{}_{}", "choice", OPTIONS),
        ("{}.{}", "chosen", OPTIONS),
        ("{}_{}", "selected", "123"),
        ("{}{}", "choice", "123"),
    ],
)
def test_the_ticked_option_is_better_than_each_other(name, tick, options):
    rows = three(name, tick, options)
    found = load_pairs(rows)
    prices = [[row[name.format("price", o)] for o in options] for row in rows]
    expected = [
        p[b] - other for p, b in zip(prices, BEST, strict=True) for k, other in enumerate(p) if k != b
    ]
    assert found.names == ("price", "time")
    assert found.differences()[:, 0].tolist() == expected
    assert len(set(found.groups.tolist())) == 24


def test_no_or_several_ticks_make_no_pair():
    rows = three()
    rows[4] |= {f"choice_{o}": 0 for o in OPTIONS}
    assert load_pairs(rows).n_pairs == 46
    assert "1 choice without exactly one chosen option makes no pair" in str(describe(rows))
    with pytest.raises(ValueError, match="no column chosen_<name>"):
        load_pairs([row | {"choice_car": 1} for row in rows])


def test_a_label_comes_before_ticks():
    rows = [row | {"choice": OPTIONS[BEST[i]]} for i, row in enumerate(three(tick="picked"))]
    assert load_pairs(rows).description.roles["label"].startswith("choice: names the option")


def test_the_description_says_which_columns_are_the_label():
    found = load_pairs(three())
    assert found.description.roles["label"] == "choice_car, choice_bus, choice_rail: the 1 of them"
    assert {*found.unused} == {"trip"}
