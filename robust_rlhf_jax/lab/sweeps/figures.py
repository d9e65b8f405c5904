"""Figures of a sweep."""

from pathlib import Path
from typing import Any

from .curves import EPSILON_LABEL, draw_curve, legend_above, panels, save
from .summary import did_not_converge, quartiles, unconverged


def gap_vs_epsilon(rows: list[dict[str, Any]], path: Path) -> None:
    """One panel per family and attack: median gap against ε with the band between the quartiles.

    Points of which a seed did not converge are hollow, and a line below the panels says so.
    """
    table, bad = quartiles(rows), unconverged(rows)
    families = list(dict.fromkeys(key[0] for key in table))
    attacks = list(dict.fromkeys(key[1] for key in table))
    names = list(dict.fromkeys(key[2] for key in table))
    size = (3.4 * len(attacks) + 0.6, 2.5 * len(families) + 0.9)
    figure, axes = panels(len(families), len(attacks), size, sharex=True, sharey=True)
    for i, family in enumerate(families):
        for j, attack in enumerate(attacks):
            for name in names:
                points = {key[3]: q for key, q in table.items() if key[:3] == (family, attack, name)}
                marked = {key[3] for key in bad if key[:3] == (family, attack, name)}
                draw_curve(axes[i, j], points, name, marked=marked)
            axes[i, j].set_title(f"{family} · {attack.replace('_', ' ')}", fontsize=10)
            axes[i, j].set_ylim(-0.03, 1.03)
    for axis in axes[-1]:
        axis.set_xlabel(EPSILON_LABEL)
    for axis in axes[:, 0]:
        axis.set_ylabel("normalised gap")
    shares = {key[3] for key in table}
    if len(shares) == 1:
        axes[0, 0].set_xticks(list(shares))
    height = size[1] + legend_above(figure, *axes[0, 0].get_legend_handles_labels())
    figure.set_figheight(height)
    if bad:
        note = f"Hollow: {did_not_converge(bad.total(), len(rows))}"
        figure.text(0.01, 0.01, note, fontsize=8, color="#555555")
    save(figure, path, (0, 0.2 / height if bad else 0, 1, 1 - (0.35 + height - size[1]) / height))
