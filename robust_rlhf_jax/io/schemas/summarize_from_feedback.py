"""Comparisons of summaries as OpenAI published them (Stiennon et al. 2020)."""

from typing import Any

from ..columns import Columns
from ..table import Table
from .base import Judged, Mapped, has, of_rows, records, structured

NAME = "summarize from feedback"
ORDER = 50


def recognise(table: Table) -> bool:
    return has(table, "info", "summaries", "choice") and len(records(table.first("summaries"))) == 2


def map(table: Table, asked: Columns) -> Mapped:
    """`choice` is the place, 0 or 1, of the better summary; `worker` judged."""
    worker = "worker" if has(table, "worker") else None
    workers = table.cells(worker)
    cells = (table.cells(name) for name in ("info", "summaries", "choice"))

    def rows():
        for row, (info, summaries, choice) in enumerate(zip(*cells, strict=True)):
            two, info = records(summaries), structured(info)
            if choice not in (0, 1) or len(two) != 2:
                yield row, None, "holds no choice between two summaries"
                continue
            rater = None if workers[row] is None else str(workers[row])
            prompt = info
            if isinstance(info, dict):
                prompt = info.get("post") or info.get("article") or info.get("title")
            yield row, prompt, [Judged(two[0].get("text"), two[1].get("text"), 1.0 - 2.0 * choice, rater)]

    said = {
        "chosen": "a text in summaries",
        "label": "choice: 0 is the first summary, 1 the second",
        "rater": "worker",
    }
    groups = [_post(cell, i) for i, cell in enumerate(table.cells("info"))]
    return of_rows(table, NAME, rows(), ("choice", "summaries", "info", worker), said, asked, groups=groups)


def _post(info: Any, row: int):
    info = structured(info)
    return info.get("id", row) if isinstance(info, dict) else row
