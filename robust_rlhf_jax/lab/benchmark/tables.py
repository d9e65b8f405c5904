"""The standings as text: Markdown for a page of documentation, a table for a terminal."""

from typing import Any

import numpy as np

from .summary import Line, Standing

HEAD = (
    "estimator", "honest pairs", "log-loss more than plain's", "worst at ε = {}", "worst attack", "highest log-loss",
    "calibration error", "finds", "raters found / right", "seconds",
)  # fmt: skip


def markdown(standings: list[Standing], reasons: list[str]) -> str:
    """One table for each file, the best worst case first, and the sentence on who leads.

    **Example:**

    >>> from robust_rlhf_jax.lab.benchmark.summary import Line, Standing
    >>> from robust_rlhf_jax.lab.benchmark.tables import markdown
    >>> line = Line("sever", 0.7, 0.0, (0.6,), ("near",), 0.66, 0.05, 0.8, float("nan"), float("nan"), 0.01)
    >>> found = Standing("rail", (0.1,), [line], "sever", 0.0, "near", 0.1, tested=600)
    >>> print(markdown([found], ["It leads."]).splitlines()[-1])
    | `sever` | .700 | +.000 | .600 | near | .660 | .050 | 80 % | – | .01 |
    """
    blocks = []
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
    """A file's lines for a terminal: what fits in a hundred columns."""
    from rich.table import Table

    table = Table(
        title=f"{standing.file}: accuracy on honest pairs", title_justify="left", box=None, pad_edge=False
    )
    table.add_column("estimator", no_wrap=True)
    table.add_column("honest", justify="right")
    for epsilon in standing.epsilons:
        table.add_column(f"worst, ε = {epsilon:g}", justify="right")
    table.add_column("worst attack", no_wrap=True)
    table.add_column("finds", justify="right")
    table.add_column("log-loss", justify="right")
    for line in standing.lines:
        row = cells(line)
        of_worst = 3 + len(standing.epsilons)
        worst = row[3:of_worst]
        table.add_row(row[0], row[1], *worst, row[of_worst], row[of_worst + 3], row[of_worst + 1])
    console.print(table)
    console.print(f"{reason} {judged_by(standing)}", highlight=False)
    console.print()
