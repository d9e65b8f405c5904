"""The picture of an audit: how suspicious each pair is, and where flagged and injected pairs stand."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool

from robust_rlhf_jax.kernels.ranking import highest_first

from .detection import precision_recall_curve
from .result import AuditResult

COLOURS = {"not flagged": "#9aa5b1", "flagged": "#d1495b", "injected": "#1d3557"}


def plot_suspicion(result: AuditResult, path: Path, title: str, flagged: Bool[np.ndarray, " M"]) -> None:
    """Histogram of suspicion (left), and suspicion by rank or, with injected pairs, precision and recall (right).
    `flagged`: of the M pairs that were fitted those that the other files call so.

    Written as PNG to `path`; needs the extra `cli` (matplotlib) and no display.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    _histogram(left, result, flagged)
    if result.injected.any():
        _detection(right, result)
    else:
        _ranking(right, result, flagged)
    figure.suptitle(title, parse_math=False)  # a name with two "$" is no formula
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph", UserWarning)  # a name in a script that the font lacks
        figure.savefig(path, dpi=150)


def _histogram(axes: Any, result: AuditResult, flagged: Bool[np.ndarray, " M"]):
    edges = np.linspace(0.0, result.suspicion.max() * 1.0001 + 1e-9, 51)
    parts = [result.suspicion[~flagged], result.suspicion[flagged]]
    names = ["not flagged", "flagged"]
    axes.hist(parts, edges, stacked=True, color=[COLOURS[name] for name in names], label=names)
    if result.injected.any():
        corrupted = result.suspicion[result.injected]
        axes.hist(
            corrupted, edges, histtype="step", color=COLOURS["injected"], linewidth=1.4, label="injected"
        )
    axes.axvline(np.log(2.0), color="black", linestyle=":", linewidth=1, label="undecided (log 2)")
    axes.set(
        yscale="log", ylim=(0.7, None), xlabel="suspicion: −log P(label), held out", ylabel="pairs per bin"
    )
    axes.legend(frameon=False, loc="upper right")


def _ranking(axes: Any, result: AuditResult, flagged: Bool[np.ndarray, " M"]):
    order = highest_first(result.suspicion)
    rank, score = np.arange(1, len(order) + 1), result.suspicion[order]
    for name, some in (("not flagged", ~flagged[order]), ("flagged", flagged[order])):
        axes.scatter(rank[some], score[some], s=5, color=COLOURS[name], label=name)
    axes.set(xlabel="rank of the pair, most suspicious first", ylabel="suspicion")
    axes.legend(frameon=False, markerscale=2, loc="upper right")


def _detection(axes: Any, result: AuditResult):
    precisions, recalls, _ = precision_recall_curve(result.suspicion, result.injected)
    label = f"by suspicion (average {result.average_precision:.2f})"
    axes.plot(np.asarray(recalls), np.asarray(precisions), color=COLOURS["injected"], label=label)
    axes.plot(result.recall, result.precision, "o", color=COLOURS["flagged"], label="flagged pairs")
    chance = result.injected.mean()
    axes.axhline(chance, color="black", linestyle=":", linewidth=1, label=f"chance ({chance:.2f})")
    axes.set(xlabel="recall of injected pairs", ylabel="precision", xlim=(-0.02, 1.02), ylim=(0.0, 1.04))
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0.0, 0.12))
