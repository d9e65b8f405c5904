"""The standings as text: Markdown for a page of documentation, a table for a terminal."""

from typing import Any

import numpy as np

from robust_rlhf_jax.rewards.registry import DEFAULT

from .contestant import PLAIN
from .summary import Line, Standing

HEAD = (
    "estimator", "honest pairs", "log-loss more than plain's", "worst at ε = {}", "worst attack", "highest log-loss",
    "calibration error", "finds", "raters found / right", "seconds",
)  # fmt: skip


OVERVIEW = (
    "file",
    "leads",
    "`fit_reward`",
    "without ε",
    "plain",
    "best other",
    "honest pairs: `fit_reward` / plain",
)


def overview(standings: list[Standing]) -> list[list[str]]:
    """One row for each file, as `OVERVIEW` says: worst accuracies at ε ≤ `LEADS_UP_TO`, – for who is not run."""
    rows = []
    for standing in standings:
        worst = {line.estimator: short(standing.decisive(line)) for line in standing.lines}
        clean = {line.estimator: short(line.clean) for line in standing.lines}
        others = [
            line.estimator for line in standing.lines if not line.estimator.startswith((DEFAULT, PLAIN))
        ]
        best = f"{worst[others[0]]} {others[0]}" if others else "–"
        mine = [worst.get(name, "–") for name in (DEFAULT, f"{DEFAULT}_untold", PLAIN)]
        honest = f"{clean.get(DEFAULT, '–')} / {clean.get(PLAIN, '–')}"
        rows.append([standing.file, standing.leader, *mine, best, honest])
    return rows


def markdown(standings: list[Standing], reasons: list[str]) -> str:
    """A table of all files; then one for each, the best worst case first, and the sentence on who leads.

    **Example:**

    >>> from robust_rlhf_jax.lab.benchmark.summary import Line, Standing
    >>> from robust_rlhf_jax.lab.benchmark.tables import markdown
    >>> line = Line("sever", 0.7, 0.0, (0.6,), ("near",), 0.66, 0.05, 0.8, float("nan"), float("nan"), 0.01)
    >>> found = Standing("rail", (0.1,), [line], "sever", 0.0, "near", 0.1, tested=600)
    >>> print(markdown([found], ["It leads."]).splitlines()[-1])
    | `sever` | .700 | +.000 | .600 | near | .660 | .050 | 80 % | – | .01 |
    """
    table = [list(OVERVIEW), ["---"] * len(OVERVIEW), *overview(standings)]
    blocks = ["\n".join("| " + " | ".join(row) + " |" for row in table)]
    for standing, reason in zip(standings, reasons, strict=True):
        head = heading(standing)
        lines = [
            f"**{standing.file}.** {reason} {judged_by(standing)}",
            "",
            "| " + " | ".join(head) + " |",
            "|---" * len(head) + "|",
        ]
        lines += [f"| `{line.estimator}` | " + " | ".join(cells(line)[1:]) + " |" for line in standing.lines]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def judged_by(standing: Standing) -> str:
    return f"{standing.tested:,} honest pairs judge: standard error {short(standing.error)}."


def heading(standing: Standing) -> list[str]:
    """The heads of the columns of a file."""
    before, after = HEAD[:3], HEAD[4:]
    return [*before, *(HEAD[3].format(f"{e:g}") for e in standing.epsilons), *after]


def cells(line: Line) -> list[str]:
    """A line as texts, in the order of `heading`."""
    raters = (
        "–" if np.isnan(line.raters_found) else f"{share(line.raters_found)} / {share(line.raters_right)}"
    )
    return [
        line.estimator,
        short(line.clean),
        "–" if np.isnan(line.harm) else f"{'+' if line.harm > -5e-4 else '−'}{short(abs(line.harm))}",
        *map(short, line.worst),
        line.attack[_deciding(line)],
        short(line.log_loss),
        short(line.calibration),
        share(line.found),
        raters,
        f"{line.seconds:.2f}".removeprefix("0") if line.seconds < 10 else f"{line.seconds:.0f}",
    ]


def short(value: float) -> str:
    """Three decimals without the leading zero."""
    return "–" if np.isnan(value) else f"{value:.3f}".removeprefix("0")


def share(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.0%}".replace("%", " %")


def _deciding(line: Line) -> int:
    return int(np.argmin(line.worst))


def print_standing(console: Any, standing: Standing, reason: str) -> None:
    """A file's lines for a terminal of 80 columns."""
    from rich.table import Table

    title = f"{standing.file}: accuracy without attack, and the worst at each ε"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("estimator", no_wrap=True)
    for name in ("clean", *(f"{e:g}".removeprefix("0") for e in standing.epsilons)):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("worst attack", no_wrap=True)
    table.add_column("log-loss", justify="right", no_wrap=True)
    for line in standing.lines:
        row = cells(line)
        of_worst = 3 + len(standing.epsilons)
        table.add_row(row[0], row[1], *row[3:of_worst], row[of_worst], row[of_worst + 1])
    console.print(table)
    console.print(f"{reason} {judged_by(standing)}", highlight=False)
    console.print()
