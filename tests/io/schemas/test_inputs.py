"""Inputs of instructions are part of the prompt; `test_wild.py` and its neighbours read these files, too."""

import dataclasses

import pytest
from wild import stores, truths
from wild.arenas import word
from wild.case import Case
from wild.chosen import each

from robust_rlhf_jax.io import Columns, describe, load_pairs
from robust_rlhf_jax.io import text_pairs as module
from robust_rlhf_jax.io.text_pairs import text_pairs


def _parts(item):
    """Some have no input."""
    return item.prompt.split(" for ", 1) if "kettle" not in item.prompt else (item.prompt, "")


@each
def alpaca(i, item):
    instruction, about = _parts(item)
    return {"instruction": instruction, "input": about, "chosen": item.chosen, "rejected": item.rejected}


@each
def alpaca_farm(i, item):
    instruction, about = _parts(item)
    return {
        "instruction": instruction, "input": about, "output_1": item.a, "output_2": item.b,
        "preference": 1 if item.vote >= 0 else 2,
    }  # fmt: skip


@each
def with_context(i, item):
    question, about = _parts(item)
    return {
        "context": about, "question": question, "answer_a": item.a, "answer_b": item.b,
        "winner": word(item.vote, "A", "B", "tie"),
    }  # fmt: skip


def in_two_lines(items):
    prompts = ["\n".join(filter(None, _parts(item))) for item in items]
    votes = zip(truths.by_item(items), prompts, strict=True)
    return [dataclasses.replace(vote, prompt=prompt) for vote, prompt in votes]


CASES = (
    Case("alpaca_with_inputs", alpaca, truth=in_two_lines),
    Case("alpaca_farm_with_inputs", alpaca_farm, stores.table(), truth=in_two_lines),
    Case("question_with_context", with_context, stores.table(), truth=in_two_lines),
)


def of_two_texts(n=6):
    sides = ("yes", "no")
    return [
        {
            "instruction": "Is it so?",
            "input": f"Case {i}.",
            "chosen": sides[i % 2],
            "rejected": sides[1 - i % 2],
        }
        for i in range(n)
    ]


def test_the_same_instruction_about_another_thing_is_another_prompt(tmp_path):
    found = load_pairs(of_two_texts(), featuriser="format")
    assert found.texts.prompt[1] == "Is it so?\nCase 1."
    assert found.groups is None
    assert found.description.roles["prompt"] == "instruction, then input"
    assert "input" not in found.description.ignored


def test_a_prompt_that_is_named_is_the_whole_prompt():
    found = load_pairs(of_two_texts(), columns=Columns(prompt="instruction"), featuriser="format")
    assert set(found.texts.prompt) == {"Is it so?"}
    assert "input" in found.description.ignored


def test_an_input_may_be_a_side():
    rows = [{"instruction": "Mend it.", "input": f"x {i}", "output": f"y {i}"} for i in range(3)]
    found = describe(rows, columns=Columns(chosen="output", rejected="input"))
    assert found.roles["prompt"] == "instruction"


def test_batches_have_the_inputs(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 4)
    path = stores.jsonl()(tmp_path, of_two_texts())
    found = text_pairs(path)
    assert found.in_batches
    (texts,) = found.batches(10)
    assert texts == load_pairs(path, featuriser="format").texts


@pytest.mark.parametrize("prompt", ["instruction", "question", "Question"])
def test_a_context_is_part_of_the_prompt_of_several_answers(prompt):
    rows = [
        {prompt: "Who?", "context": f"c {i}", "responses": ["x", "y"], "scores": [i % 2, 0.5]}
        for i in range(4)
    ]
    found = load_pairs(rows, featuriser="format")
    assert found.texts.prompt == [f"Who?\nc {i}" for i in range(4)]
    assert found.description.roles["prompt"] == f"{prompt}, then context"


def test_a_context_of_each_answer_is_no_part_of_the_prompt():
    rows = [
        {"question": f"q{i // 2}", "context": f"c {i}", "answer": f"x {i}", "score": i % 2} for i in range(8)
    ]
    assert load_pairs(rows, featuriser="format").texts.prompt == [f"q{i}" for i in range(4)]


def test_a_context_that_is_the_prompt_stays_so():
    rows = [{"context": f"c {i}", "chosen": f"x {i}", "rejected": f"y {i}"} for i in range(4)]
    assert load_pairs(rows, featuriser="format").texts.prompt == [f"c {i}" for i in range(4)]


def test_a_context_of_numbers_is_no_part_of_the_prompt():
    rows = [
        {"question": f"q{i}", "context": i % 2, "chosen": f"x {i}", "rejected": f"y {i}"} for i in range(4)
    ]
    assert load_pairs(rows, featuriser="format").texts.prompt == [f"q{i}" for i in range(4)]
