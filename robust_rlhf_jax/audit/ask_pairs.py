"""The pairs that raters are asked about again, with sides in random order: the order of most files gives the label
away.

Which pairs those are: `advice.py`.
"""

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from robust_rlhf_jax.spreadsheets import without_formula

from .advice import Advice
from .findings import Findings
from .pair_check import pair_check

# The column of the answer: the side that is better.
BETTER = "better"


class AskPair(NamedTuple):
    """`pair` and `row` of the file, from 1, and its `check`; `columns` and `cells` of what raters and readers see."""

    pair: int
    row: int
    check: str
    columns: tuple[str, ...]
    cells: tuple[str, ...]


def ask_sides(findings: Findings, advice: Advice) -> list[AskPair]:
    """Prompt and sides of `advice.ask`; where two rewards stand, the chance of the first side by each."""
    pairs = findings.pairs
    return [
        AskPair(
            int(i) + 1,
            int(pairs.rows[i]) + 1,
            pair_check(pairs, int(i)),
            *map(tuple, zip(*_cells(findings, int(i)), strict=True)),
        )
        for i in advice.ask
    ]


def _cells(findings: Findings, i: int) -> list[tuple[str, str]]:
    pairs, contention = findings.pairs, findings.held_out.audit.contention
    turned = first_is_rejected(i)
    order = ("rejected", "chosen") if turned else ("chosen", "rejected")
    if pairs.texts is not None:
        sides = [getattr(pairs.texts, side)[i] for side in order]
        found = [("prompt", pairs.texts.prompt[i])]
    else:
        sides, found = [_features(findings, i, side) for side in order], []
    found += list(zip(("first", "second"), sides, strict=True))
    if contention is not None:
        x = np.asarray(pairs.take(np.array([i])).preferred_differences(), np.float64)[0] * (
            -1 if turned else 1
        )
        names = ("first wins, reward 1", "first wins, reward 2")
        found += [
            (name, f"{expit(x @ theta):.0%}") for name, theta in zip(names, contention.theta, strict=True)
        ]
    return found


def first_is_rejected(i: int) -> bool:
    """Whether the rejected side of pair `i` is shown first: a coin for each pair, the same in every file."""
    return bool(np.random.default_rng(i).integers(2))


def _features(findings: Findings, i: int, side: str) -> str:
    values = np.asarray(getattr(findings.pairs, side)[i], np.float64)
    return ", ".join(f"{name} {v:.4g}" for name, v in zip(findings.pairs.names, values, strict=True))


def write_ask(path: Path, findings: Findings | None, advice: Advice | None) -> None:
    """CSV with a row for each pair to ask about, and an empty column for the answer, which `answers.py` reads."""
    asked = [] if findings is None or advice is None else ask_sides(findings, advice)
    columns = asked[0].columns if asked else ("first", "second")
    with open(path, "w", newline="", encoding="utf-8", errors="backslashreplace") as file:
        writer = csv.writer(file)
        writer.writerow(["pair", "row", *columns, BETTER, "check"])
        for one in asked:
            writer.writerow([one.pair, one.row, *map(without_formula, one.cells), "", one.check])
