"""Medians and quartiles of the normalised gap over seeds."""

from typing import Any

import numpy as np


def quartiles(rows: list[dict[str, Any]]) -> dict[tuple[str, str, str, float], tuple[float, float, float]]:
    """(family, attack, algorithm, ε) → (lower quartile, median, upper quartile) of the normalised gap.

    A NaN gap counts as 1, the worst: an algorithm that breaks down is not left out of its own statistics.
    """
    groups: dict[tuple[str, str, str, float], list[float]] = {}
    for row in rows:
        key = (row["family"], row["attack"], row["algorithm"], row["epsilon"])
        groups.setdefault(key, []).append(row["normalised_gap"])
    return {
        key: tuple(np.quantile(np.nan_to_num(gaps, nan=1.0), (0.25, 0.5, 0.75)).tolist())
        for key, gaps in groups.items()
    }


def print_table(rows: list[dict[str, Any]], console: Any) -> None:
    """One rich table per family: attack × algorithm down, ε across, cells "median (lower–upper)" in %; 80 columns."""
    from rich import box
    from rich.table import Table

    table = quartiles(rows)
    epsilons = sorted({key[3] for key in table})
    for family in dict.fromkeys(key[0] for key in table):
        title = f"[bold]{family}[/bold]: normalised gap in %, median (quartiles) over seeds"
        grid = Table(
            title=title, title_justify="left", title_style="", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0)
        )
        grid.add_column("attack / algorithm", no_wrap=True)
        for epsilon in epsilons:
            grid.add_column(f"ε = {epsilon:g}", justify="right")
        for attack in dict.fromkeys(key[1] for key in table if key[0] == family):
            grid.add_row(f"[bold]{attack}[/bold]")
            names = dict.fromkeys(key[2] for key in table if key[:2] == (family, attack))
            for name in sorted(names):
                grid.add_row(" " + name, *[_cell(table.get((family, attack, name, e))) for e in epsilons])
        console.print(grid)


def _cell(quarter):
    if quarter is None:
        return "–"
    low, median, high = (f"{100 * max(0.0, q):.0f}" for q in quarter)
    return f"[bold]{median}[/bold] [dim]({low}–{high})[/dim]"
