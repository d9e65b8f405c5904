"""Several answers of one side in a row; `test_wild.py` and its neighbours read these files, too."""

import dataclasses

from wild import stores, truths
from wild.case import Case
from wild.chosen import each


@each
def one_chosen(i, item):
    """Two rejected answers beside one chosen, in turn a list of one."""
    return {
        "prompt": item.prompt,
        "chosen": item.chosen,
        "rejected": [item.rejected, f"{item.rejected} Again."][: 1 + i % 2],
    }


@each
def of_a_reranker(i, item):
    return {
        "query": item.prompt,
        "pos": [item.chosen],
        "neg": [item.rejected, f"{item.rejected} Again."][: 1 + i % 2],
    }


def _every_one(items):
    votes = []
    for row, vote in enumerate(truths.by_item(items)):
        votes += [vote, dataclasses.replace(vote, rejected=f"{vote.rejected} Again.")][: 1 + row % 2]
    return votes


CASES = (
    Case("several_rejected", one_chosen, truth=_every_one),
    Case("positives_and_negatives", of_a_reranker, truth=_every_one),
    Case("several_rejected_parquet", one_chosen, stores.parquet(), truth=_every_one),
)
