"""Figures of a sweep."""

from pathlib import Path
from typing import Any

from .summary import quartiles

COLOURS = {
    "standard": "#c1432e",
    "robust_policy": "#0b3c5d",
    "robust_policy_unknown": "#6a8caf",
    "uniform_coverage": "#1f6f8b",
    "uniform_coverage_reuse": "#3fb3d4",
    "condition_number": "#5a8f3d",
    "condition_number_autodiff": "#8a5fb0",
    "first_order": "#2f3e75",
    "pessimistic_mle": "#d98e04",
    "pessimistic_mle_linear": "#a8795a",
    "r3m": "#e377a8",
    "cdpo": "#17a398",
    "rdpo": "#b5b800",
    "sever": "#4a2c1a",
    "redescending": "#6fa8dc",
    "confident_learning": "#7b1e5b",
    "clean_reference": "#7a7a7a",
}
LABELS = {
    "standard": "plain RLHF",
    "robust_policy": "robust policy",
    "robust_policy_unknown": "robust policy, ε unknown",
    "uniform_coverage": "Algorithm 1",
    "uniform_coverage_reuse": "Algorithm 1, no split",
    "condition_number": "Algorithm 3",
    "condition_number_autodiff": "Algorithm 3, autodiff",
    "first_order": "Algorithm 4",
    "pessimistic_mle": "pessimistic MLE",
    "pessimistic_mle_linear": "pessimistic MLE, linear",
    "r3m": "R³M",
    "cdpo": "cDPO loss",
    "rdpo": "rDPO loss",
    "sever": "Sever",
    "redescending": "density power",
    "confident_learning": "confident learning",
    "clean_reference": "plain RLHF, clean data",
}


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
