"""Medians and quartiles of the normalised gap over seeds, and which of them did not converge."""

from collections import Counter
from typing import Any

import numpy as np

from robust_rlhf_jax.terminal import counted

Setting = tuple[str, str, str, float]


def setting_of(row: dict[str, Any]) -> Setting:
    """(family, attack, algorithm, ε): what the cells have in common that seeds are summarised over."""
    return row["family"], row["attack"], row["algorithm"], row["epsilon"]


def quartiles(rows: list[dict[str, Any]]) -> dict[Setting, tuple[float, float, float]]:
    """(family, attack, algorithm, ε) → (lower quartile, median, upper quartile) of the normalised gap.

    A NaN gap counts as 1, the worst: an algorithm that breaks down is not left out of its own statistics.
    """
    groups: dict[Setting, list[float]] = {}
    for row in rows:
        groups.setdefault(setting_of(row), []).append(row["normalised_gap"])
    return {
        key: tuple(np.quantile(np.nan_to_num(gaps, nan=1.0), (0.25, 0.5, 0.75)).tolist())
        for key, gaps in groups.items()
    }


def unconverged(rows: list[dict[str, Any]]) -> Counter[Setting]:
    """(family, attack, algorithm, ε) → how many seeds ended with a status other than `converged`."""
    return Counter(setting_of(row) for row in rows if row.get("status") not in ("converged", None))


def print_table(rows: list[dict[str, Any]], console: Any) -> None:
    """One rich table per family: attack × algorithm down, ε across, cells "median (lower–upper)" in %; 80 columns.

    A star marks cells of which a seed did not converge; a line below says so.
    """
    from rich import box
    from rich.table import Table

    table, bad = quartiles(rows), unconverged(rows)
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
                keys = [(family, attack, name, e) for e in epsilons]
                grid.add_row(" " + name, *[_cell(table.get(key), key in bad) for key in keys])
        console.print(grid)
    if bad:
        console.print(f"* {did_not_converge(bad.total(), len(rows))}")


def did_not_converge(bad: int, of: int) -> str:
    """The sentence under tables and figures that mark such cells."""
    whose = "its gap counts" if bad == 1 else "their gaps count"
    return f"{bad:,} of {counted(of, 'cell')} did not converge; {whose} as {'it is' if bad == 1 else 'they are'}."


def _cell(quarter, bad: bool):
    if quarter is None:
        return "–"
    low, median, high = (f"{100 * max(0.0, q):.0f}" for q in quarter)
    return f"[bold]{median}[/bold]{'*' * bad} [dim]({low}–{high})[/dim]"
