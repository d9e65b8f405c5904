"""Rows as a test writes them, and the texts that were chosen."""

import itertools
import json

from robust_rlhf_jax.io import Columns, load_pairs

from . import truths

LETTERS = "abcdefgh"


def read(tmp_path, rows, **columns):
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return load_pairs(path, featuriser="format", columns=Columns(**columns))


def choices(numbers):
    """A choice of three texts in each row, by these numbers."""
    texts = [[f"Answer {LETTERS[j]} of case {i}." for j in range(3)] for i in range(len(numbers))]
    return [
        {"prompt": f"Case {i}?", "responses": texts[i], "best": n}
        for i, n in zip(itertools.count(), numbers, strict=False)
    ]


def chosen_texts(pairs):
    return [vote.chosen for vote in truths.read_votes(pairs)]
