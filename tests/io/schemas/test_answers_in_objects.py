"""Sides that are objects of a text and what is known of it; `test_wild.py` and its neighbours read these files."""

import pytest
from wild import stores
from wild.case import Case
from wild.chosen import each

from robust_rlhf_jax.io import load_pairs


def said(text, i):
    return {"model": f"model-{i % 3}", "text": text, "tokens": len(text)}


@each
def open_sides(i, item):
    winner = "tie" if item.vote == 0 else "a" if item.vote > 0 else "b"
    return {"prompt": item.prompt, "a": said(item.a, i), "b": said(item.b, i + 1), "winner": winner}


@each
def named_sides(i, item):
    sides = {side: {"content": getattr(item, side), "score": i} for side in ("chosen", "rejected")}
    return {"prompt": {"text": item.prompt}, **sides}


CASES = (
    Case("sides_with_their_models", open_sides, options={"ties": True}),
    Case("sides_with_their_scores_parquet", named_sides, stores.parquet()),
)


def test_an_object_without_a_text_is_refused():
    rows = [{"prompt": "p", "chosen": {"model": "m", "score": 1}, "rejected": {"text": "x"}}]
    with pytest.raises(ValueError, match="row 1, column chosen holds a message without role and content"):
        load_pairs(rows)
