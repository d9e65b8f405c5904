"""Schemas that name the chosen side as TRL does, and what people put beside it.

Source: TRL's page "Dataset formats and types".
"""

import json

from .worlds import Item

Rows = list[dict]


def message(role: str, content: str | None, **more) -> dict:
    return {"role": role, "content": content, **more}


def dialogue(prompt: str, answer: str) -> list[dict]:
    return [message("user", prompt), message("assistant", answer)]


def each(make):
    """A schema of one row for an item, from a function (row number, item)."""

    def encode(items: list[Item]) -> Rows:
        return [make(i, item) for i, item in enumerate(items)]

    encode.__doc__ = make.__doc__
    return encode


@each
def explicit(i, item):
    """TRL, standard, explicit prompt."""
    return {"prompt": item.prompt, "chosen": item.chosen, "rejected": item.rejected}


@each
def implicit(i, item):
    """TRL, standard, implicit prompt: it stands in both texts."""
    return {side: f"{item.prompt} {getattr(item, side)}" for side in ("chosen", "rejected")}


@each
def conversational(i, item):
    """TRL, conversational, explicit prompt."""
    sides = {side: [message("assistant", getattr(item, side))] for side in ("chosen", "rejected")}
    return {"prompt": [message("user", item.prompt)], **sides}


@each
def conversational_implicit(i, item):
    return {side: dialogue(item.prompt, getattr(item, side)) for side in ("chosen", "rejected")}


@each
def one_message(i, item):
    """A single message, not a list, as LLaMA-Factory has it with the names of OpenAI."""
    return {"prompt": item.prompt} | {
        s: message("assistant", getattr(item, s)) for s in ("chosen", "rejected")
    }


@each
def with_margin(i, item):
    """TRL's and OpenRLHF's margin beside the texts: how much better, never whether."""
    return {"prompt": item.prompt, "chosen": item.chosen, "rejected": item.rejected, "margin": 0.25 * (i % 5)}


@each
def with_bookkeeping(i, item):
    """Numbers that are no features: lengths, ranks, ids, times, token ids, log probabilities."""
    row = {"prompt": item.prompt, "chosen": item.chosen, "rejected": item.rejected}
    for k, side in enumerate(("chosen", "rejected")):
        row |= {
            f"{side}_len": len(row[side]),
            f"{side}_rank": k + 1,
            f"{side}_id": 1000 + 2 * i + k,
            f"{side}_created_at": 1_700_000_000 + 60 * i + k,
            f"reference_{side}_logps": -10.0 - i - k,
            f"{side}_logps": -9.5 - i,
            f"{side}_input_ids": [1, 5 + i, 7 + k],
        }
    return row


def _call(text: str) -> list[dict]:
    function = {"name": "look_up", "arguments": json.dumps({"what": text.split()[-1]})}
    return [
        message("assistant", None, tool_calls=[{"id": "call_1", "type": "function", "function": function}])
    ]


@each
def tool_calls(i, item):
    """Answers without content, that call a tool."""
    return {
        "prompt": [message("user", item.prompt)],
        "chosen": _call(item.chosen),
        "rejected": _call(item.rejected),
    }


@each
def preferred(i, item):
    return {"prompt": item.prompt, "preferred": item.chosen, "dispreferred": item.rejected}


@each
def annotated(i, item):
    """Chosen and rejected by one annotator each; the pair's id once."""
    return explicit([item])[0] | {"pair_id": f"p{i}", "annotator_id": item.votes[0][0]}


def annotated_twice(items: list[Item]) -> Rows:
    """The same pair by several annotators: a row each, the id repeated."""
    rows = []
    for i, item in enumerate(items):
        for who, value in item.votes:
            sides = (item.a, item.b) if value > 0 else (item.b, item.a)
            rows.append(
                {
                    "id": f"p{i}",
                    "prompt": item.prompt,
                    "chosen": sides[0],
                    "rejected": sides[1],
                    "annotator_id": who,
                }
            )
    return rows


@each
def kto(i, item):
    """TRL's unpaired preferences: one completion, good or bad."""
    return {"prompt": item.prompt, "completion": item.a, "label": item.vote > 0}


@each
def only_messages(i, item):
    return {"messages": dialogue(item.prompt, item.chosen)}
