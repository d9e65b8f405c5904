"""Figures of a sweep."""

from pathlib import Path
from typing import Any

from robust_rlhf_jax.methods import METHODS

from .programs import REFERENCE
from .summary import quartiles

COLOURS = {name: method.colour for name, method in METHODS.items()} | {REFERENCE: "#7a7a7a"}
LABELS = {name: method.label for name, method in METHODS.items()} | {REFERENCE: "plain RLHF, clean data"}


def gap_vs_epsilon(rows: list[dict[str, Any]], path: Path) -> None:
    """One panel per family and attack: median gap against ε with the band between the quartiles."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    table = quartiles(rows)
    families = list(dict.fromkeys(key[0] for key in table))
    attacks = list(dict.fromkeys(key[1] for key in table))
    size = (3.4 * len(attacks) + 0.6, 2.5 * len(families) + 0.9)
    figure, axes = plt.subplots(
        len(families), len(attacks), figsize=size, squeeze=False, sharex=True, sharey=True
    )
    for i, family in enumerate(families):
        for j, attack in enumerate(attacks):
            _panel(axes[i, j], table, family, attack)
            axes[i, j].set_title(f"{family} · {attack.replace('_', ' ')}", fontsize=10)
    for axis in axes[-1]:
        axis.set_xlabel("fraction of corrupt pairs ε")
    for axis in axes[:, 0]:
        axis.set_ylabel("normalised gap")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncols=len(labels), frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.35 / size[1]))
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _panel(axis, table, family, attack):
    for name in dict.fromkeys(key[2] for key in table):
        points = sorted((key[3], q) for key, q in table.items() if key[:3] == (family, attack, name))
        if not points:
            continue
        epsilons = [epsilon for epsilon, _ in points]
        low, median, high = zip(*(q for _, q in points), strict=True)
        colour = COLOURS.get(name)
        style = "--" if name == "clean_reference" else "-"
        axis.plot(epsilons, median, style, marker="o", ms=3.5, color=colour, label=LABELS.get(name, name))
        axis.fill_between(epsilons, low, high, color=colour, alpha=0.18, lw=0)
    axis.set_ylim(-0.03, 1.03)
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)
