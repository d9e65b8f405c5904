"""Pairwise evaluations of Vertex AI; `test_wild.py` and its neighbours read these files, too."""

import numpy as np
import pytest
from wild import stores, worlds
from wild.arenas import word
from wild.case import Case
from wild.chosen import each

from robust_rlhf_jax.io import Columns, load_pairs

WORDS = ("BASELINE", "CANDIDATE", "TIE")
TIES = {"ties": True}


@each
def of_a_metric(i, item):
    metric = "pairwise_question_answering_quality"
    return {
        "prompt": item.prompt, "response": item.b, "baseline_model_response": item.a,
        f"{metric}/explanation": "CANDIDATE is the shorter one.",
        f"{metric}/pairwise_choice": word(item.vote, *WORDS), f"{metric}/confidence": 1.0,
    }  # fmt: skip


@each
def of_a_table(i, item):
    sides = {"prompt": item.prompt, "candidate_response": item.b, "baseline_response": item.a}
    return sides | {"pairwise_choice": word(item.vote, *WORDS), "explanation": "-"}


CASES = (
    Case("vertex_of_a_metric", of_a_metric, options=TIES),
    Case("vertex_of_a_table", of_a_table, stores.table(), options=TIES),
)


def test_choices_of_several_metrics_are_asked_about():
    items = worlds.pairs(np.random.default_rng(1))
    rows = [row | {"fluency/pairwise_choice": "BASELINE"} for row in of_a_metric(items)]
    with pytest.raises(ValueError, match=r"the choices of 2 metrics: name one by --label"):
        load_pairs(rows, featuriser="format")
    found = load_pairs(rows, columns=Columns(label="fluency/pairwise_choice"), featuriser="format")
    assert found.texts.chosen == [item.a for item in items]


def test_an_unknown_choice_is_a_bad_row_or_a_tie():
    rows = of_a_metric(worlds.pairs(np.random.default_rng(1)))
    (label,) = (name for name in rows[0] if name.endswith("choice"))
    rows[2][label] = "UNKNOWN"
    with pytest.raises(ValueError, match=r"row 3, column .* holds the unknown label 'UNKNOWN'"):
        load_pairs(rows, featuriser="format")
    assert load_pairs(rows, columns=Columns(tie_is="UNKNOWN"), featuriser="format").ties.sum() == 1
