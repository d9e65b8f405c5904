"""A column called user holds raters or prompts."""

import pytest

from robust_rlhf_jax.io import load_pairs

PEOPLE = [f"u{i % 5}" for i in range(40)]


@pytest.mark.parametrize("people", [PEOPLE, [f"ann.{who}@example.org" for who in PEOPLE], [*range(8)] * 5])
@pytest.mark.parametrize(
    "sides",
    [
        {"price_a": 3, "price_b": 4, "time_a": 1, "time_b": 5, "choice": "a"},
        {"chosen_price": 3, "rejected_price": 4},
        {"chosen": "Yes, it is.", "rejected": "No, it is not."},
    ],
)
def test_names_that_come_again_are_raters(people, sides):
    found = load_pairs([{"user": who} | sides for who in people], featuriser="format")
    assert set(found.raters.tolist()) == {*map(str, people)}
    assert "prompt" not in found.description.roles


@pytest.mark.parametrize("prompt", ["What is {}?", "{}是什么？"])
@pytest.mark.parametrize("different", [40, 10])
def test_prompts_are_prompts(prompt, different):
    said = [prompt.format(i % different) for i in range(40)]
    rows = [{"user": said[i], "chosen": f"Yes {i}.", "rejected": f"No {i}."} for i in range(40)]
    found = load_pairs(rows, featuriser="format")
    assert found.texts.prompt == said
    assert found.raters is None
