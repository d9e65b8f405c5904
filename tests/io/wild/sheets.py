"""Tables as people type them: sides called a and b, labels as numbers or words, ratings of each side."""

import dataclasses
import datetime
import decimal
import json
from collections.abc import Callable

from .arenas import word
from .chosen import dialogue, each

Rows = list[dict]


def labelled(label: Callable[[float], object], column: str = "label", sides=("response_a", "response_b")):
    """Two texts and a label made of the vote."""

    @each
    def encode(i, item):
        return {"prompt": item.prompt, sides[0]: item.a, sides[1]: item.b, column: label(item.vote)}

    return encode


def words(first: object, second: object, tie: object = "tie", **names):
    return labelled(lambda value: word(value, first, second, tie), **names)


def graded(much_a: str, slightly_a: str, tie: str, slightly_b: str, much_b: str, **names):
    """Five answers of a questionnaire."""
    said = {2.0: much_a, 1.0: slightly_a, 0.0: tie, -1.0: slightly_b, -2.0: much_b}
    return labelled(said.__getitem__, **names)


@each
def stars(i, item):
    """Stars for each side and no label: the higher ones win."""
    better, worse = 5 - i % 2, 1 + i % 3
    first, second = (better, worse) if item.vote > 0 else (worse, better) if item.vote < 0 else (3, 3)
    return {
        "prompt": item.prompt,
        "response_a": item.a,
        "response_b": item.b,
        "rating_a": first,
        "rating_b": second,
    }


@each
def scores_of_sides(i, item):
    """The same as scores between 0 and 1."""
    row = stars([item])[0]
    names = {"rating_a": "score_a", "rating_b": "score_b"}
    return {names.get(name, name): cell / 5 if name in names else cell for name, cell in row.items()}


@each
def two_labels(i, item):
    """A person's and a judge model's, that differ now and then."""
    judged = -item.vote if i % 4 == 2 else item.vote
    row = {"prompt": item.prompt, "response_a": item.a, "response_b": item.b}
    return row | {"judge_verdict": word(judged, "A", "B", ""), "human_verdict": word(item.vote, "A", "B", "")}


@each
def bullets(i, item):
    """Answers that begin with what a spreadsheet takes for a formula."""
    return {"prompt": item.prompt} | {
        s: f"{'-=+@'[i % 4]} {getattr(item, s)}" for s in ("chosen", "rejected")
    }


@each
def numbers(i, item):
    """Named features of both sides, nothing else."""
    names = enumerate(("length", "clarity", "tone", "depth", "form"))
    return {f"{side}_{name}": getattr(item, side)[k] for k, name in names for side in ("chosen", "rejected")}


@each
def numbers_labelled(i, item):
    """The same names for the two places, and a column that says which of them won."""
    sides = numbers([dataclasses.replace(item, votes=(("-", 1.0),))])[0]
    return sides | {"label": int(item.vote > 0)}


@each
def numbers_as_text(i, item):
    """Embeddings written into one cell, as pandas writes a list."""
    return {f"{side}_embedding": str(list(getattr(item, side))) for side in ("chosen", "rejected")}


@each
def embeddings(i, item):
    return {f"{side}_embedding": list(getattr(item, side)) for side in ("chosen", "rejected")}


@each
def embeddings_beside_prompt(i, item):
    return {"prompt": item.prompt, "id": i} | embeddings([item])[0]


@each
def bare_vectors(i, item):
    return {side: list(getattr(item, side)) for side in ("chosen", "rejected")}


@each
def with_class_label(i, item):
    """A label stored as a number whose names stand in the file's schema (`datasets.ClassLabel`)."""
    return {
        "prompt": item.prompt, "response_a": item.a, "response_b": item.b,
        "winner": {1.0: 0, -1.0: 1, 0.0: 2}[item.vote],
    }  # fmt: skip


@each
def with_image(i, item):
    """An image beside the texts (`datasets.Image`): bytes and a path."""
    row = {"image": {"bytes": b"\x89PNG\r\n\x1a\n" + bytes([i]), "path": f"{i}.png"}, "prompt": item.prompt}
    return row | {"chosen": item.chosen, "rejected": item.rejected}


@each
def typed(i, item):
    """Columns of many types beside the texts, some of them missing."""
    when = datetime.datetime(2025, 1, 1 + i % 28, 10, i % 60, tzinfo=datetime.UTC)
    row = {"prompt": item.prompt, "chosen": item.chosen, "rejected": item.rejected, "chosen_created_at": when}
    row |= {
        "day": when.date() if i % 4 else None,
        "price": decimal.Decimal(i) / 4,
        "raw": bytes([i]),
        "flag": i % 3 == 0,
    }
    row |= {"tags": [["x"], None, []][i % 3], "nested": [{"a": [i, None], "b": {"c": str(i)}}], "empty": None}
    return row | {"count": i if i % 5 else None, "small": i % 7, "flag": i % 3 == 0}


@each
def messages_as_text(i, item):
    """Lists of messages as JSON in the cells of a table."""
    return {side: json.dumps(dialogue(item.prompt, getattr(item, side))) for side in ("chosen", "rejected")}
