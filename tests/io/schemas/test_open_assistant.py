"""OpenAssistant's trees of messages, nested and a message a row.

`test_wild.py` and its neighbours read, turn and export these files.
"""

import numpy as np
import pytest
from wild import stores, worlds
from wild.case import Case
from wild.truths import every_pair, every_pair_of_rows

from robust_rlhf_jax.io import describe, load_pairs


def message(name, parent, role, text, rank=None, **more):
    return {
        "message_id": name, "parent_id": parent, "user_id": f"author of {name}", "text": text, "role": role,
        "lang": "en", "review_count": 3, "review_result": True, "deleted": False, "rank": rank, "synthetic": False,
        "labels": {"spam": {"value": 0.0, "count": 3}}, **more,
    }  # fmt: skip


def messages(i, item):
    """The prompt, and the replies with ranks from 0; one more has none."""
    ranks = [sorted(item.scores, reverse=True).index(score) for score in item.scores]
    replies = [
        message(f"m{i}.{j}", f"m{i}", "assistant", text, rank)
        for j, (text, rank) in enumerate(zip(item.answers, ranks, strict=True))
    ]
    return [
        message(f"m{i}", None, "prompter", item.prompt),
        message(f"m{i}.x", f"m{i}", "assistant", "?"),
        *replies,
    ]


def trees(items):
    return [
        {"message_tree_id": f"m{i}", "tree_state": "ready_for_export",
         "prompt": root | {"replies": [reply | {"replies": []} for reply in replies]}}
        for i, (root, *replies) in enumerate(messages(i, item) for i, item in enumerate(items))
    ]  # fmt: skip


def flat(items):
    return [one | {"message_tree_id": f"m{i}"} for i, item in enumerate(items) for one in messages(i, item)]


CASES = (
    Case("open_assistant_trees", trees, stores.jsonl("oasst.trees.jsonl.gz"), world=worlds.rankings,
         truth=every_pair),
    Case("open_assistant_messages", flat, stores.parquet(), world=worlds.rankings, truth=every_pair_of_rows,
         facts=("prompt",)),
    Case("open_assistant_messages_csv", flat, stores.table(), world=worlds.rankings, truth=every_pair_of_rows,
         facts=("prompt",)),
)  # fmt: skip

DEEP = [
    message("a", None, "prompter", "Hi"),
    message("b", "a", "assistant", "Hello", 0),
    message("c", "a", "assistant", "What", 1),
    message("d", "b", "prompter", "Why?", 0),
    message("e", "b", "prompter", "Who?", 1),
    message("f", "d", "assistant", "Never", 1),
    message("g", "d", "assistant", "Because", 0),
]


def nested(rows):
    children = lambda one: [node(row) for row in rows if row["parent_id"] == one["message_id"]]  # noqa: E731
    node = lambda one: one | {"replies": children(one)}  # noqa: E731
    return [{"message_tree_id": "a", "prompt": node(rows[0])}]


@pytest.mark.parametrize("rows", [DEEP, DEEP[::-1], nested(DEEP)], ids=["flat", "backwards", "tree"])
def test_the_prompt_is_the_way_from_the_root_and_prompters_are_not_compared(rows):
    found = load_pairs(rows, featuriser="format")
    said = {*zip(found.texts.prompt, found.texts.chosen, found.texts.rejected, strict=True)}
    assert said == {("Hi", "Hello", "What"), ("Hi\n\nHello\n\nWhy?", "Because", "Never")}
    assert "Ranked messages of prompters, which make no pair: 2." in str(found.description)
    assert found.raters is None
    assert len({*found.groups.tolist()}) == 1


def test_what_was_deleted_repeated_or_is_missing():
    rows = [row | {"deleted": row["message_id"] == "c"} for row in DEEP]
    found = load_pairs([*rows, DEEP[-1] | {"rank": 5}], featuriser="format")
    assert found.texts.chosen == ["Because"]
    found = load_pairs([row for row in DEEP if row["message_id"] != "a"], featuriser="format")
    assert found.texts.prompt == ["", "Hello\n\nWhy?"]
    assert "Sets of replies without a prompt, whose message the file lacks: 1." in str(describe(DEEP[1:]))


def test_a_message_that_follows_itself_ends():
    rows = [DEEP[0] | {"parent_id": "b"}, *DEEP[1:3]]
    assert load_pairs(rows, featuriser="format").texts.chosen == ["Hello"]


def test_equal_ranks_are_ties_and_none_are_refused():
    tied = load_pairs([row | {"rank": 0} for row in DEEP], featuriser="format")
    assert np.all(tied.strength == 0)
    with pytest.raises(ValueError, match="no message has two ranked replies of the assistant that differ"):
        load_pairs([row | {"rank": None} for row in DEEP], featuriser="format")
