"""The benchmark as one HTML page that needs no network."""

from typing import Any, NamedTuple

import numpy as np

from robust_rlhf_jax.outputs import page_templates

from .claims import Checked
from .summary import Means, Standing
from .tables import OVERVIEW, cells, heading, judged_by, overview, short

# Accuracies from that of a coin to that of the honest fit run from one end of the colours to the other.
COLOURS = 8


class Cell(NamedTuple):
    """An accuracy in the grid of attacks and estimators: `text`, `shade` 0 … COLOURS − 1 from bad to good."""

    text: str
    shade: int


class Grid(NamedTuple):
    """One ε of a file: attacks down, estimators across."""

    epsilon: float
    estimators: list[str]
    rows: list[tuple[str, list[Cell | None]]]


def render_page(
    standings: list[Standing],
    reasons: list[str],
    known: Means,
    checked: list[Checked],
    lines: dict[str, str],
    facts: dict[str, Any],
) -> str:
    """The page; every text from the data is escaped. `lines`: what each estimator is.

    **Raises:** ImportError without the extra `cli`.
    """
    environment = page_templates("robust_rlhf_jax.lab.benchmark")
    sections = [
        {
            "standing": standing,
            "reason": f"{reason} {judged_by(standing)}",
            "head": heading(standing),
            "lines": [cells(line) for line in standing.lines],
            "grids": grids(standing, known),
        }
        for standing, reason in zip(standings, reasons, strict=True)
    ]
    return environment.get_template("benchmark.html").render(
        overview=[[name.replace("`", "") for name in OVERVIEW], *overview(standings)],
        sections=sections,
        checked=checked,
        lines=lines,
        facts=facts,
        colours=COLOURS,
    )


def grids(standing: Standing, known: Means) -> list[Grid]:
    """Accuracy under every attack, for each ε, the estimators in the order of the standing."""
    names = [line.estimator for line in standing.lines]
    mine = {key[1:]: m.accuracy for key, m in known.items() if key[0] == standing.file}
    best = max((line.clean for line in standing.lines if not np.isnan(line.clean)), default=1.0)
    found = []
    for epsilon in standing.epsilons:
        attacks = dict.fromkeys(attack for attack, e, _ in mine if e == epsilon)
        rows = [(attack, [_cell(mine.get((attack, epsilon, n)), best) for n in names]) for attack in attacks]
        found.append(Grid(epsilon, names, rows))
    return found


def _cell(accuracy: float | None, best: float) -> Cell | None:
    if accuracy is None:
        return None
    share = (accuracy - 0.5) / max(best - 0.5, 1e-9)
    return Cell(short(accuracy), int(np.clip(share * COLOURS, 0, COLOURS - 1)))
