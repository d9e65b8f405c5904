"""Messages with parts, as Gemini has them; `test_wild.py` and its neighbours read these files."""

import json

from wild import stores
from wild.case import Case
from wild.chosen import each


def said(text, role="model"):
    return {"role": role, "parts": [{"text": text}]}


@each
def of_one_message(i, item):
    return {
        "contents": [said(item.prompt, "user")],
        "chosen": said(item.chosen),
        "rejected": said(item.rejected),
    }


@each
def of_dialogues(i, item):
    """The role of a single message may be missing."""
    return {
        side: [{"parts": [{"text": item.prompt}]}, said(getattr(item, side))]
        for side in ("chosen", "rejected")
    }


@each
def in_texts(i, item):
    sides = {name: json.dumps(said(text)) for name, text in (("response_a", item.a), ("response_b", item.b))}
    return {"prompt": item.prompt, **sides, "winner": "a" if item.vote >= 0 else "b"}


CASES = (
    Case("gemini_messages", of_one_message),
    Case("gemini_dialogues", of_dialogues),
    Case("gemini_table", in_texts, stores.table()),
)
