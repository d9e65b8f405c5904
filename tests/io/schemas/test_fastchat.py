"""FastChat's logs, as `gradio_block_arena_anony.py` writes them; `test_wild.py` and its neighbours read these files."""

import pytest
from wild.arenas import models, word
from wild.case import Case
from wild.chosen import each

from robust_rlhf_jax.io import load_pairs


def state(name, prompt, answer, examples=()):
    messages = [*examples, ["USER", prompt], ["ASSISTANT", answer]]
    return {"template_name": "one_shot", "system_message": "A chat.", "roles": ["USER", "ASSISTANT"],
            "messages": messages, "offset": len(examples), "conv_id": "0f3", "model_name": name}  # fmt: skip


def vote(i, prompt, a, b, value, who="10.0.0.1", examples=()):
    names = [*models(i).values()]
    states = [state(name, prompt, text, examples) for name, text in zip(names, (a, b), strict=True)]
    kind = word(value, "leftvote", "rightvote", ("tievote", "bothbad_vote")[i % 2])
    return {"tstamp": 1700000000.5 + i, "type": kind, "models": names, "states": states, "ip": who}


@each
def votes(i, item):
    (who, value), *_ = item.votes
    return vote(i, item.prompt, item.a, item.b, value, who)


CASES = (Case("fastchat_logs", votes, options={"ties": True}, facts=("prompt", "row", "rater")),)


def test_other_lines_make_no_pair_and_examples_are_no_prompt():
    chat = {"tstamp": 1.0, "type": "chat", "model": "x", "state": state("x", "p", "q"), "ip": "10.0.0.1"}
    shown = [["USER", "Hello"], ["ASSISTANT", "Hi"]]
    rows = [chat, vote(1, "p 1", "x 1", "y 1", -1, examples=shown), chat, vote(2, "p 2", "x 2", "y 2", 1)]
    found = load_pairs(rows, featuriser="format")
    assert found.rows.tolist() == [1, 3]
    assert found.texts.prompt == ["p 1", "p 2"]
    assert found.texts.chosen == ["y 1", "x 2"]
    assert "Lines that are no votes make no pair: 2 chat" in str(found.description)


def test_a_vote_on_one_conversation_is_a_bad_row():
    rows = [vote(i, f"p {i}", f"x {i}", f"y {i}", 1) for i in range(3)]
    rows[1]["states"].pop()
    with pytest.raises(ValueError, match="row 2, column type holds no two conversations"):
        load_pairs(rows, featuriser="format")
