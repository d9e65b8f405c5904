"""Figures of the reproductions."""

from pathlib import Path
from typing import Any

import numpy as np

from robust_rlhf_jax.lab.sweeps.curves import EPSILON_LABEL, draw_curve, panels, save

from .exponents import SMALLEST
from .table1 import Curve
from .worst_case import worst_cases


def worst_case_figure(rows: list[dict[str, Any]], ours: tuple[str, ...], path: Path) -> None:
    """One panel per family: median worst-case return against ε, band between quartiles for ours."""
    worst = worst_cases(rows)
    families = list(dict.fromkeys(key[0] for key in worst))
    names = list(dict.fromkeys(key[1] for key in worst))
    figure, axes = panels(1, len(families), (4.2 * len(families) + 0.4, 4.6), sharey=True)
    for axis, family in zip(axes[0], families, strict=True):
        for name in names:
            points = {key[2]: case.quartiles for key, case in worst.items() if key[:2] == (family, name)}
            draw_curve(axis, points, name, name in ours)
        axis.set_title(family.replace("_", " "))
        axis.set_xlabel(EPSILON_LABEL)
        axis.set_xticks(sorted({key[2] for key in worst if key[0] == family}))
        axis.set_ylim(-0.03, 1.03)
    axes[0, 0].set_ylabel("normalised return, worst attack")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=min(len(labels), 5), frameon=False, fontsize=9)
    save(figure, path, (0, 0.06 * -(-len(labels) // 5), 1, 1))


def exponent_figure(curves: list[Curve], path: Path) -> None:
    """Log–log: gap against ε of every row of Table 1 with its fit and the slope that the paper promises."""
    figure, axes = panels(1, len(curves), (3.6 * len(curves) + 0.4, 3.9))
    for axis, curve in zip(axes[0], curves, strict=True):
        _exponent_panel(axis, curve)
    axes[0, 0].set_ylabel("V★ − V^π, worst attack")
    save(figure, path)


def _exponent_panel(axis: Any, curve: Curve) -> None:
    epsilons, middle = curve.epsilons, np.maximum(curve.middle, SMALLEST)
    if curve.clean is not None:
        low, high = np.maximum(np.quantile(curve.gaps, (0.25, 0.75), axis=1), SMALLEST)
        axis.fill_between(epsilons, low, high, color="#1f6f8b", alpha=0.2, lw=0)
        axis.axhline(max(curve.clean, SMALLEST), color="#7a7a7a", lw=1, ls=":", label="ε = 0")
    axis.plot(epsilons, middle, "o", ms=4, color="#1f6f8b", label="measured")
    centre, height = np.exp(np.mean(np.log(epsilons))), np.exp(np.mean(np.log(middle)))
    slopes = ((curve.fitted.slope, "-", "fit"), (curve.row.promised, "--", "paper"))
    for slope, style, name in slopes:
        line = height * (epsilons / centre) ** slope
        axis.plot(epsilons, line, style, color="#c1432e", label=f"{name}: slope {slope:.2g}")
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_ylim(0.3 * middle.min(), 3.0 * middle.max())
    axis.set_xticks(epsilons, [f"{e:g}" for e in epsilons], fontsize=8)
    axis.minorticks_off()
    axis.set_title(f"{curve.row.family} · {curve.row.algorithm}".replace("_", " "), fontsize=10)
    axis.set_xlabel(EPSILON_LABEL)
    axis.legend(frameon=False, fontsize=8)
