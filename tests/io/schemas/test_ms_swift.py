"""Conversations with what was rejected at their end; `test_wild.py` and its neighbours read these files."""

import pytest
from wild import stores
from wild.case import Case
from wild.chosen import dialogue, each, message

from robust_rlhf_jax.io import load_pairs


@each
def rejected_response(i, item):
    system = [message("system", "Be brief.")] if i % 2 else []
    return {"messages": system + dialogue(item.prompt, item.chosen), "rejected_response": item.rejected}


@each
def rejected_messages(i, item):
    return {
        "messages": dialogue(item.prompt, item.chosen),
        "rejected_messages": dialogue(item.prompt, item.rejected),
    }


CASES = (
    Case("ms_swift_response", rejected_response, facts=("row",)),
    Case("ms_swift_response_parquet", rejected_response, stores.parquet(), facts=("row",)),
    Case("ms_swift_messages", rejected_messages),
)


def test_the_messages_before_the_last_one_are_the_prompt():
    turns = dialogue("First?", "Yes.") + dialogue("And then?", "No.")
    found = load_pairs([{"messages": turns, "rejected_response": "Perhaps."}] * 2, featuriser="format")
    assert found.texts.prompt[0] == "First?\n\nYes.\n\nAnd then?"
    assert (found.texts.chosen[0], found.texts.rejected[0]) == ("No.", "Perhaps.")


@pytest.mark.parametrize("empty", [[], "[]"])
def test_a_conversation_without_messages_is_a_bad_cell(empty):
    turns = dialogue("First?", "Yes.")
    rows = [{"messages": messages, "rejected_response": "No."} for messages in (turns, empty, turns)]
    with pytest.raises(ValueError, match="row 2, column messages holds no messages"):
        load_pairs(rows, featuriser="format")
    assert load_pairs(rows, featuriser="format", skip_bad=1).n_pairs == 2
