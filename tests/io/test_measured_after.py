"""Features that look measured after the choice are named, with the columns to leave out."""

import random

import pytest

from robust_rlhf_jax.io import describe

FOLLOWS = [
    "dwell_ms", "time_on_page", "response_time", "ResponseTime", "rt_ms", "decision_time_s", "fixation_count",
    "gaze_duration", "watch_time", "purchased", "clicked", "n_clicks", "likes", "conversion_rate", "elo_after",
    "rating_change", "rating_diff", "post_elo", "satisfaction", "confidence", "n_annotators",
]  # fmt: skip
ATTRIBUTES = [
    "price", "time", "travel_time", "duration", "change", "changes", "rating", "stars", "latency", "wait",
    "waiting_time", "access_time", "comfort", "price_change_fee", "scrap", "art", "hours", "delivery_time", "length",
]  # fmt: skip


def chosen_first(name, draw):
    return {
        "chosen_cost": draw(), "chosen_" + name: draw(), "rejected_cost": draw(), "rejected_" + name: draw()
    }  # fmt: skip


def two_sides(name, draw):
    sides = {"cost_a": draw(), f"{name}_a": draw(), "cost_b": draw(), f"{name}_b": draw()}
    return sides | {"choice": "ab"[draw() % 2]}


def one_option(name, draw):
    return {"cost": draw(), name: draw()}


def notes_of(way, name, n=20):
    draw = random.Random(0).randrange
    rows = [way(name, lambda: draw(1, 9000)) for _ in range(n)]
    if way is one_option:
        rows = [row | {"task": i // 2, "chosen": int(i % 2 == draw(2))} for i, row in enumerate(rows)]
        rows = [
            row | {"chosen": 1 - rows[i - 1]["chosen"] if i % 2 else row["chosen"]}
            for i, row in enumerate(rows)
        ]
    return " ".join(describe(rows).notes)


@pytest.mark.parametrize("name", FOLLOWS)
def test_what_looks_measured_after_the_choice_is_named_with_its_columns(name):
    ways = {two_sides: f"columns {name}_a and {name}_b"}
    # chosen_rating_change is the score of a model called change, and no feature beside others.
    ways |= {} if name.startswith("rating") else {chosen_first: f"columns chosen_{name} and rejected_{name}"}
    for way, columns in ways.items():
        said = notes_of(way, name)
        assert f"The feature {name} looks measured during or after the choice" in said
        assert f"leave the {columns} out of the file" in said


def test_the_column_of_one_option_a_row_is_named():
    assert "leave the column dwell_ms out" in notes_of(one_option, "dwell_ms", 60)


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attributes_of_options_are_not(name):
    assert "measured" not in notes_of(two_sides, name)


@pytest.mark.parametrize("n", [20, 5000])
def test_several_are_named_in_one_sentence(n):
    draw = random.Random(1).randrange
    rows = [{f"{side}_{name}": draw(9000) for side in ("chosen", "rejected") for name in ("cost", "rt", "elo_after")}
            for _ in range(n)]  # fmt: skip
    (note,) = (note for note in describe(rows).notes if "measured" in note)
    assert note.startswith("The features rt and elo_after look measured")
    assert "chosen_rt, rejected_rt, chosen_elo_after and rejected_elo_after out" in note
