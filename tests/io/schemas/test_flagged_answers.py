"""An answer a row, of which one is chosen; `test_wild.py` and its neighbours read, turn and export these files."""

import dataclasses

import pytest
from wild import stores, truths, worlds
from wild.case import Case

from robust_rlhf_jax.io import Columns, load_pairs


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


def in_words(items):
    return [
        {"prompt": item.prompt, "completion": text, "label": "chosen" if text == item.chosen else "rejected"}
        for item in items for text in (item.a, item.b)
    ]  # fmt: skip


PROMPT = ("prompt",)
CASES = (
    Case("flagged_by_pair", by_pair, stores.table(), facts=PROMPT),
    Case("flagged_by_prompt", by_prompt, facts=PROMPT),
    Case("flagged_in_words", in_words, facts=PROMPT),
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


def of_named_options(answer="candidate", flag="chosen", sets="choice_id", **more):
    """30 choices of three, the cheapest one chosen."""
    return [
        {sets: i, "price": price, "time": (i + j) % 5, answer: f"Name{3 * i + j}", flag: int(price == 2)} | more
        for i in range(30) for j, price in enumerate((2 + i % 3 % 2, 4, 2 + (i % 3 % 2 == 0)))
    ]  # fmt: skip


@pytest.mark.parametrize("answer", ["candidate", "text", "summary", "message"])
@pytest.mark.parametrize("asked", [None, Columns(pair_id="choice_id")])
def test_names_beside_columns_of_numbers_are_no_answers(answer, asked):
    found = load_pairs(of_named_options(answer), columns=asked)
    assert found.schema == "choice sets, one option a row"
    assert found.names == ("price", "time")


def test_names_beside_numbers_and_a_flag_that_the_caller_names_are_no_answers():
    found = load_pairs(of_named_options(flag="winner"), columns=Columns(label="winner"))
    assert found.names == ("price", "time")


def test_profiles_that_voters_chose_from_are_numbers():
    rows = [
        {"voter": f"v{v}", "task_id": t, "candidate": f"Name{10 * v + 2 * t + j}",
         "age": 30 + (7 * v + 3 * t + 11 * j) % 40, "female": (v + t + j) % 2, "chosen": int(j == v % 2)}
        for v in range(10) for t in range(5) for j in range(2)
    ]  # fmt: skip
    found = load_pairs(rows)
    assert (found.schema, found.n_pairs) == ("choice sets, one option a row", 50)
    assert set(found.names) == {"age", "female"}


@pytest.mark.parametrize(
    ("more", "asked"), [({"prompt": "Whom?"}, None), ({"ask": "Whom?"}, Columns(prompt="ask"))]
)
def test_answers_to_a_prompt_stay_answers_beside_numbers(more, asked):
    found = load_pairs(of_named_options(**more), columns=asked, featuriser="format", features="texts")
    assert (found.schema, found.texts.prompt[0]) == ("chosen answers", "Whom?")


def test_long_answers_beside_a_number_stay_answers():
    rows = [
        {"pair_id": i // 2, "text": f"x {i} " * 20, "words": i * 7 % 5, "chosen": i % 2} for i in range(60)
    ]
    assert load_pairs(rows, featuriser="format").schema == "chosen answers"


@pytest.mark.parametrize("name", ["pair_id", "comparison"])
@pytest.mark.parametrize("more", [{}, {"prompt": "Whom?"}])
def test_the_callers_id_names_the_sets(name, more):
    rows = [{name: i // 3, "text": f"x {i}", "chosen": i % 3 == 0} | more for i in range(24)]
    found = load_pairs(rows, columns=Columns(pair_id=name), featuriser="format")
    assert found.texts.chosen == [f"x {i - i % 3}" for i in range(24) if i % 3]
    assert len(set(found.groups.tolist())) == 8


def test_an_id_of_each_row_names_the_pairs():
    rows = [{"prompt": f"p{i // 2}", "uid": f"u{i}", "text": f"x {i}", "chosen": i % 2} for i in range(8)]
    found = load_pairs(rows, columns=Columns(pair_id="uid"), featuriser="format")
    assert found.ids.tolist() == [f"u{i}" for i in range(0, 8, 2)]


def test_another_prompt_than_that_of_the_sets_may_be_asked_for():
    rows = [{"prompt": f"p{i // 2}", "topic": "t", "text": f"x {i}", "chosen": i % 2} for i in range(8)]
    found = load_pairs(rows, columns=Columns(prompt="topic"), featuriser="format")
    assert (found.n_pairs, found.texts.prompt[0]) == (4, "t")


@pytest.mark.parametrize("part", ["prompt", "pair_id", "rater"])
def test_a_column_that_is_not_there_is_named(part):
    rows = [{"prompt": f"p{i // 2}", "text": f"x {i}", "chosen": i % 2} for i in range(8)]
    with pytest.raises(ValueError, match="nowhere"):
        load_pairs(rows, columns=Columns(**{part: "nowhere"}), featuriser="format")


@pytest.mark.parametrize("words", [("Preferred", "Rejected"), ("accepted", "rejected"), ("win", "lose")])
def test_words_say_which_answer_was_chosen(words):
    rows = [{"id": i // 2, "response": f"x {i}", "preference": words[i % 4 in (1, 2)]} for i in range(12)]
    found = load_pairs(rows, featuriser="format")
    assert found.texts.chosen == [f"x {i}" for i in range(12) if i % 4 in (0, 3)]


def test_kinds_of_texts_are_no_choice():
    rows = [
        {"prompt": f"p{i // 2}", "text": f"x {i}", "label": ("positive", "negative")[i % 2]}
        for i in range(12)
    ]
    with pytest.raises(ValueError, match="no column that is known to score them"):
        load_pairs(rows, featuriser="format")
