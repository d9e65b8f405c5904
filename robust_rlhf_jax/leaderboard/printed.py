"""The leaderboard as a table in the terminal."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from robust_rlhf_jax.terminal import harmless, marked

from .ratings import Rating

# Characters of a name in one line, at least.
SHORTEST = 12
# Between two columns.
GAP = 2
# Where a name may be broken: after what stands between its parts.
PARTS = re.compile(r"[^/_:\s-]*[/_:\s-]*")


def print_ratings(console: Any, rows: list[Rating]) -> None:
    """A table that fits into eighty columns: long names of models go on in the next line, numbers never."""
    from rich.table import Table

    known = any(np.isfinite(row.weighed) for row in rows)
    heads = [
        "places",
        "rating",
        "95 %",
        "without contradicted votes",
        *(["without bad raters"] if known else []),
    ]
    heads += ["votes", "won"]
    numbers = [_numbers(row, known) for row in rows]
    # rich would take from any column what all together are too wide.
    widths = [_longest(head, cells) for head, cells in zip(heads, zip(*numbers, strict=True), strict=True)]
    room = max(SHORTEST, console.width - sum(widths) - GAP * len(widths))
    table = Table(box=None, pad_edge=False)
    for head, width in zip(heads, widths, strict=True):
        table.add_column(head, justify="right", width=width)
        if head == "places":
            table.add_column("model", no_wrap=True)
    for row, (places, *cells) in zip(rows, numbers, strict=True):
        table.add_row(places, "\n".join(map(marked, broken(harmless(row.name), room))), *cells)
    console.print(table)


def broken(name: str, room: int) -> list[str]:
    """The name in lines of at most `room` characters, broken after what stands between its parts where that can be.

    **Example:**

    >>> from robust_rlhf_jax.leaderboard.printed import broken
    >>> broken("mistralai/Mixtral-8x22B-Instruct", 16)
    ['mistralai/', 'Mixtral-8x22B-', 'Instruct']
    """
    from rich.cells import cell_len, chop_cells  # some characters are two wide

    lines = [""]
    for part in PARTS.findall(name):
        for piece in chop_cells(part, room):
            if cell_len(lines[-1] + piece.rstrip()) > room:
                lines.append("")
            lines[-1] += piece
    return [line.rstrip() for line in lines if line.strip()] or [name]


def _longest(head: str, cells: Sequence[str]) -> int:
    """The width of a column in which no number and no word of its head is broken."""
    return max(map(len, [*cells, *head.split()]))


def _numbers(row: Rating, known: bool) -> list[str]:
    """Places, and what stands right of the name."""
    places = (
        f"{row.best_place}" if row.best_place == row.worst_place else f"{row.best_place}–{row.worst_place}"
    )
    interval = "–" if np.isnan(row.low) else f"{row.low:.0f}–{row.high:.0f}"
    others = [f"{row.robust:.0f}", *([f"{row.weighed:.0f}"] if known else [])]
    return [places, f"{row.plain:.0f}", interval, *others, f"{row.votes:,}", f"{row.won:.0%}"]
