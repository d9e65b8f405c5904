"""A method's curve against ε, as every figure draws it, without a display; colours and labels: `methods.py`."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from robust_rlhf_jax.lab.methods import METHODS

from .programs import REFERENCE

COLOURS = {name: method.colour for name, method in METHODS.items()} | {REFERENCE: "#7a7a7a"}
LABELS = {name: method.label for name, method in METHODS.items()} | {REFERENCE: "plain RLHF, clean data"}
EPSILON_LABEL = "fraction of corrupt pairs ε"


def panels(rows: int, columns: int, size: tuple[float, float], sharex: bool = False, sharey: bool = False):
    """(figure, axes [rows, columns]) of `size` in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size)
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False, sharex=sharex, sharey=sharey)
    for axis in axes.flat:
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


def draw_curve(
    axis: Any,
    quartiles: dict[float, tuple[float, float, float]],
    name: str,
    ours: bool = True,
    marked: Iterable[float] = (),
):
    """The median by ε and, for `ours`, the band between the quartiles; rivals are dotted and thinner.

    `marked`: the ε whose point is hollow, since a seed did not converge.
    """
    if not quartiles:
        return
    epsilons = sorted(quartiles)
    low, median, high = zip(*(quartiles[epsilon] for epsilon in epsilons), strict=True)
    style = "--" if name == REFERENCE else "-" if ours else ":"
    look = {"marker": "o", "ms": 3.5, "lw": 2.0 if ours else 1.3, "color": COLOURS.get(name)}
    axis.plot(epsilons, median, style, label=LABELS.get(name, name), **look)
    hollow = [(epsilon, quartiles[epsilon][1]) for epsilon in epsilons if epsilon in set(marked)]
    if hollow:
        axis.plot(*zip(*hollow, strict=True), "o", ms=6, mfc="white", mec=COLOURS.get(name), mew=1.3)
    if ours:
        axis.fill_between(epsilons, low, high, color=COLOURS.get(name), alpha=0.18, lw=0)


def legend_above(figure: Any, handles: list[Any], labels: list[str]) -> float:
    """A legend above the panels, in as many rows as the width of the figure asks for; what those after the first take
    of its height, in inches.
    """
    columns = len(labels)
    while True:
        legend = figure.legend(handles, labels, loc="upper center", ncols=columns, frameon=False)
        box = legend.get_window_extent()
        if columns == 1 or box.width <= figure.bbox.width:
            break
        legend.remove()
        columns -= 1
    rows = math.ceil(len(labels) / columns)
    return (rows - 1) / rows * box.height / figure.dpi


def save(figure: Any, path: Path, rect: tuple[float, float, float, float] = (0.0, 0.0, 1.0, 1.0)) -> None:
    """Write a PNG; `rect`: the part of the figure that the panels have, the rest is the legend's."""
    figure.tight_layout(rect=rect)
    figure.savefig(path, dpi=150)
