"""Objects of answers by name; `test_wild.py` and its neighbours read these files, too."""

import json

import pytest
from wild import stores, truths, worlds
from wild.case import Case
from wild.chosen import each

from robust_rlhf_jax.io import Columns, describe, load_pairs

MODELS = ("gpt", "llama", "mistral", "olmo")


@each
def by_letter(i, item):
    winner = "tie" if item.vote == 0 else "A" if item.vote > 0 else "B"
    return {"prompt": item.prompt, "responses": {"A": item.a, "B": item.b}, "preference": winner}


@each
def by_model(i, item):
    """Two of several models in each row, with their names alone in common."""
    first, second = MODELS[i % 4], MODELS[(i + 1) % 4]
    winner = first if item.vote > 0 else second
    return {"prompt": item.prompt, "completions": {first: item.a, second: item.b}, "winner": winner}


@each
def with_scores(i, item):
    answers, scores = (dict(zip(MODELS, of, strict=True)) for of in (item.answers, item.scores))
    return {"prompt": item.prompt, "responses": answers, "scores": scores}


@each
def with_scores_inside(i, item):
    answers = zip(MODELS, item.answers, item.scores, strict=True)
    return {
        "prompt": item.prompt,
        "responses": json.dumps({who: {"text": text, "rating": score} for who, text, score in answers}),
    }


CASES = (
    Case("answers_by_letter", by_letter, options={"ties": True}),
    Case("answers_by_model_parquet", by_model, stores.parquet()),
    Case("answers_by_model_with_scores", with_scores, world=worlds.rankings, truth=truths.every_pair),
    Case("answers_by_model_in_texts", with_scores_inside, stores.table(), world=worlds.rankings,
         truth=truths.every_pair),
)  # fmt: skip


@pytest.mark.parametrize(
    "said", ["{} is better", "{} is slightly better", "Response {} won", "side {} is the best"]
)
def test_answers_are_named_in_sentences(said):
    rows = [
        {"prompt": f"p{i}", "responses": {"A": f"a{i}", "B": f"b{i}"}, "preference": said.format("AB"[i % 2])}
        for i in range(6)
    ]
    assert load_pairs(rows, featuriser="format").labels.tolist() == [1, -1] * 3
    rows[2]["preference"] = "B is not better"
    with pytest.raises(
        ValueError, match="several answers a row in column responses, and no column that is known"
    ):
        load_pairs(rows, featuriser="format")


def test_scores_by_name_are_used():
    rows = [
        {"prompt": f"p{i}", "answers": {"x": f"a{i}", "y": f"b{i}"}, "ratings": {"x": 1, "y": 2}}
        for i in range(4)
    ]
    assert not describe(rows).ignored


@pytest.mark.parametrize("label", ["answer", "label"])
def test_the_right_one_of_several_choices_is_no_preference(label):
    rows = [
        {"question": f"q{i}", "options": {"A": f"a{i}", "B": f"b{i}"}, label: "AB"[i % 2]} for i in range(6)
    ]
    with pytest.raises(
        ValueError, match="several answers a row in column options, and no column that is known"
    ):
        load_pairs(rows, featuriser="format")


def of_two(i):
    return {
        "responses": {"A": f"x {i}", "B": f"y {i}"},
        "scores": {"A": 1, "B": 2},
        "ranks": {"A": 1, "B": 2},
    }


@pytest.mark.parametrize(
    ("label", "best"), [("scores", "y"), ("score", "y"), ("ranks", "x"), ("rank", "x"), ("winner", "x")]
)
@pytest.mark.parametrize("listed", [False, True])
def test_the_label_that_is_asked_for_decides(label, best, listed):
    rows = [of_two(i) | {"winner": "A"} for i in range(6)]
    if listed:
        rows = [{n: [*c.values()] if isinstance(c, dict) else c for n, c in row.items()} for row in rows]
        label = {"score": "scores", "rank": "ranks"}.get(label, label)
    found = load_pairs(rows, columns=Columns(label=label), featuriser="format")
    assert found.texts.chosen == [f"{best} {i}" for i in range(6)]
