"""An answer a row, of which one is chosen; `test_wild.py` and its neighbours read, turn and export these files."""

import dataclasses

import pytest
from wild import stores, truths, worlds
from wild.case import Case

from robust_rlhf_jax.io import load_pairs


def by_pair(items):
    """Two rows a pair, as databases have them."""
    return [
        {"pair_id": i, "prompt": item.prompt, "side": side, "text": text, "chosen": int(text == item.chosen)}
        for i, item in enumerate(items) for side, text in (("A", item.a), ("B", item.b))
    ]  # fmt: skip


def by_prompt(items):
    return [
        {"prompt": item.prompt, "response": text, "preferred": text == item.chosen}
        for item in items for text in (item.a, item.b)
    ]  # fmt: skip


def of_several(items):
    return [
        {"question": item.prompt, "answer": text, "is_best": ["no", "yes"][score == max(item.scores)], "user_id": i % 3}
        for i, item in enumerate(items) for text, score in zip(item.answers, item.scores, strict=True)
    ]  # fmt: skip


def best_with_each(items):
    said = truths.every_pair(items)
    best = [max(zip(item.scores, item.answers, strict=True))[1] for item in items]
    return [
        dataclasses.replace(vote, row=None, rater=str(vote.row % 3)) for vote in said if vote.chosen in best
    ]


PROMPT = ("prompt",)
CASES = (
    Case("flagged_by_pair", by_pair, stores.table(), facts=PROMPT),
    Case("flagged_by_prompt", by_prompt, facts=PROMPT),
    Case("flagged_of_several", of_several, stores.table(), world=worlds.rankings, truth=best_with_each,
         facts=("prompt", "rater")),
)  # fmt: skip


def test_sets_without_one_chosen_make_no_pair():
    rows = [{"prompt": f"p{i // 3}", "text": f"x {i}", "selected": i % 3 == 1 and i != 10} for i in range(12)]
    found = load_pairs(rows, featuriser="format")
    assert found.n_pairs == 6
    assert "1 sets of answers without exactly one chosen make no pair." in str(found.description)
    assert found.description.roles["prompt"] == "prompt"


def test_people_who_chose_from_the_same_answers_are_told_apart():
    rows = [
        {"prompt": f"p{i}", "response": f"{text} {i}", "annotator": who, "chosen": (text == "x") == (who == "v")}
        for i in range(12) for who in ("v", "w") for text in ("x", "y")
    ]  # fmt: skip
    found = load_pairs(rows, featuriser="format")
    said = set(zip(found.raters, found.texts.chosen, strict=True))
    assert said == {*(("v", f"x {i}") for i in range(12)), *(("w", f"y {i}") for i in range(12))}


def test_single_answers_are_no_sets():
    rows = [{"prompt": f"p{i}", "response": f"x {i}", "chosen": i % 2} for i in range(8)]
    with pytest.raises(ValueError, match="chosen"):
        load_pairs(rows, featuriser="format")


@pytest.mark.parametrize("outputs", [(0, 1, 2), ("low", "middle", "high")])
def test_numbers_and_few_words_are_features(outputs):
    rows = [
        {"task": f"t{i // 2}", "output": outputs[i % 3], "price": i % 5 + i, "chosen": i % 2}
        for i in range(40)
    ]
    assert load_pairs(rows).schema == "choice sets, one option a row"
