"""Files that invite a wrong guess: answers that are JSON, marks that nothing closes, third answers, less is better.

Source: AlpacaEval's annotations, weighted by the judge's log probabilities in version 2.
"""

import dataclasses
import json
from pathlib import Path

from . import sides, stores
from .arenas import models, word
from .chosen import each
from .truths import Vote, by_item
from .worlds import Item

Rows = list[dict]


@each
def answers_in_json(i, item):
    """Answers that are JSON themselves: texts all the same."""
    answer = {side: json.dumps([getattr(item, side), f"item {i}"]) for side in ("chosen", "rejected")}
    return {"prompt": item.prompt} | answer


def as_written(encode):
    """The truth of rows that name their sides chosen and rejected."""

    def truth(items: list[Item]) -> list:
        said = zip(by_item(items), encode(items), strict=True)
        return [dataclasses.replace(v, chosen=row["chosen"], rejected=row["rejected"]) for v, row in said]

    return truth


@each
def begun_by_quotes(i, item):
    """An answer in every sixth row begins with a quotation mark that nothing closes; no line ends or tabs."""
    mark = '"' if i % 6 == 0 else ""
    flat = {side: getattr(item, side).replace("\n", " ").replace('"', "") for side in ("chosen", "rejected")}
    return {"prompt": item.prompt, "chosen": mark + flat["chosen"], "rejected": flat["rejected"]}


def unquoted(folder: Path, rows: Rows) -> Path:
    """Tabs between, and no quoting: what many command-line tools write."""
    lines = ["\t".join(rows[0]), *("\t".join(row.values()) for row in rows)]
    return stores.put(folder / "pairs.tsv", ("\n".join(lines) + "\n").encode())


@each
def alpaca_eval_weighted(i, item):
    """AlpacaEval 2 weights by the judge's log probabilities: any number from 1 (the first output) to 2."""
    return sides.alpaca_eval([item])[0] | {"preference": 1.5 - 0.1 * (1 + i % 4) * item.vote}


@each
def three_sides(i, item):
    """A third answer that the label may name."""
    third = f"Neither {item.a}"
    return {"prompt": item.prompt, "response_a": item.a, "response_b": item.b, "response_c": third,
            "winner": word(item.vote, "A", "B", "C")}  # fmt: skip


def best_of_three(items):
    """The one that the label names with each of the others."""
    votes = []
    for row, item in enumerate(items):
        answers = [item.a, item.b, f"Neither {item.a}"]
        best = word(item.vote, *answers)
        votes += [Vote(best, other, False, item.prompt, row) for other in answers if other != best]
    return votes


@each
def ranks_of_sides(i, item):
    """The rank of each side, 1 the better: not a score of which more is better."""
    return {"prompt": item.prompt, "response_a": item.a, "response_b": item.b,
            "rank_a": 1 + (item.vote < 0), "rank_b": 1 + (item.vote > 0)}  # fmt: skip


@each
def losses_of_sides(i, item):
    """Less is better, or the name says nothing."""
    return {"prompt": item.prompt, "response_a": item.a, "response_b": item.b,
            "loss_a": 1.0 - 0.1 * item.vote, "loss_b": 1.0 + 0.1 * item.vote}  # fmt: skip


@each
def chosen_names_sides(i, item):
    """`chosen` and `rejected` hold the letters of the sides, not texts."""
    return {"prompt": item.prompt, "response_a": item.a, "response_b": item.b,
            "chosen": word(item.vote, "A", "B", ""), "rejected": word(item.vote, "B", "A", "")}  # fmt: skip


@each
def chosen_names_models(i, item):
    """The same with the names of models, whose sides change."""
    first, second = models(i).values()
    return {"prompt": item.prompt, **models(i), "response_a": item.a, "response_b": item.b,
            "chosen": word(item.vote, first, second, ""), "rejected": word(item.vote, second, first, "")}  # fmt: skip


@each
def chosen_against_label(i, item):
    """A label that now and then contradicts what is called chosen."""
    return {"prompt": item.prompt, "chosen": item.a, "rejected": item.b, "response_a": item.a, "response_b": item.b,
            "preference": word(item.vote, "A", "B", "")}  # fmt: skip


@each
def experiment(i, item):
    """A column of A and B that says in which arm of an experiment a pair was, and no label at all."""
    return {"prompt": item.prompt, "response_a": item.a, "response_b": item.b, "group": "AB"[i % 2]}
