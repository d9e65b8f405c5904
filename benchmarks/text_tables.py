"""Tables and figure of the study of cleaning (`text_cleaning.py`): what was found, and what cleaning changed."""

from importlib import metadata
from pathlib import Path

import matplotlib
import numpy as np
from studies import short

from robust_rlhf_jax.outputs import environment

matplotlib.use("Agg")
from matplotlib import pyplot as plt

CLEANINGS = ("flag", "highest", "cleanlab", "known")
SCORES = ("fit_reward", "cleanlab", "surprise")
COLORS = {"flag": "#0b3c5d", "highest": "#c1432e", "cleanlab": "#d9a441", "known": "#6b8f71"}
TRUTHS = {"majority": "the majority of held-back votes", "corrupted": "the corrupted votes"}


def mean(values, error: bool = False, signed: bool = False) -> str:
    """Mean over seeds, with its standard error; – where no seed has a value."""
    values = np.asarray(values, float)
    values = values[~np.isnan(values)]
    if not len(values):
        return "–"
    said = ("+" if signed and values.mean() >= 0 else "") + short(values.mean()).replace("-", "−")
    return said + (f" ± {short(standard_error(values))}" if error else "")


def standard_error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def conditions(cells: list[dict]) -> dict[tuple, list[dict]]:
    """The cells of all seeds by (kind of corruption, share)."""
    grouped: dict[tuple, list[dict]] = {}
    for cell in cells:
        grouped.setdefault((cell["kind"] if cell["share"] else "none", cell["share"]), []).append(cell)
    return grouped


def found_table(cells: list[dict], truth: str) -> str:
    """How many votes each way flags, precision / recall, and average precisions, against a name in `TRUTHS`."""
    heads = (
        "corruption", "share", "such votes", "`flag`", "highest", "cleanlab",
        *(f"average precision: {name}" for name in SCORES),
    )  # fmt: skip
    lines = [_line(heads), "|---" * len(heads) + "|"]
    for (kind, share), group in conditions(cells).items():
        against = [cell[truth] for cell in group]
        if share or truth == "majority":
            base = mean([found["base"] for found in against])
            flagged = [_flagged(group, truth, way) for way in ("flag", "highest", "cleanlab")]
            ranked = [mean([found["ap"][score] for found in against]) for score in SCORES]
            lines.append(_line((kind, f"{share:.0%}", base, *flagged, *ranked)))
    return "\n".join(lines)


def _flagged(group: list[dict], truth: str, way: str) -> str:
    """How many votes a way flags, on average; precision / recall."""
    count = np.mean([cell["flagged"][way] for cell in group])
    quality = (mean([cell[truth][what][way] for cell in group]) for what in ("precision", "recall"))
    return f"{count:.0f}: {' / '.join(quality)}"


def model_table(cells: list[dict], model: str) -> str:
    """Held-out accuracy and log-loss before, and what each cleaning changes."""
    heads = ["corruption", "share"]
    for score in ("accuracy", "log-loss"):
        heads += [f"{score} before", *CLEANINGS]
    lines = [_line(heads), "|---" * len(heads) + "|"]
    for (kind, share), group in conditions(cells).items():
        row = [kind, f"{share:.0%}"]
        for score in (0, 1):
            row.append(mean([cell["models"]["none"][model][score] for cell in group], error=True))
            row += [mean(gains(group, model, way, score), error=True, signed=True) for way in CLEANINGS]
        lines.append(_line(row))
    return "\n".join(lines)


def _line(row) -> str:
    return f"| {' | '.join(row)} |"


def gains(group: list[dict], model: str, way: str, score: int) -> np.ndarray:
    """Score after cleaning less score before, seed by seed."""
    scores = [cell["models"] for cell in group]
    return np.array([models[way][model][score] - models["none"][model][score] for models in scores])


def draw_figure(cells: list[dict], path: Path) -> None:
    """Change of held-out accuracy and log-loss by cleaning: a row for each score, a column for each model."""
    groups, models = conditions(cells), list(cells[0]["models"]["none"])
    figure, axes = plt.subplots(
        2, len(models), figsize=(9.5, 7.6), sharey=True, sharex="row", layout="constrained"
    )
    y = np.arange(len(groups))[::-1]
    for row, score in zip(axes, ("accuracy", "log-loss"), strict=True):
        for ax, model in zip(row, models, strict=True):
            _panel(ax, y, groups, model, score)
        row[0].set_yticks(y, [f"{kind}, {share:.0%}" if share else "not corrupted" for kind, share in groups])
        row[0].set_ylabel("corruption of the audited votes")
    legend = axes[0, 0].get_legend_handles_labels()
    figure.legend(*legend, frameon=False, loc="outside lower center", ncols=len(CLEANINGS), fontsize=9)
    figure.savefig(path, dpi=130, facecolor="white")
    plt.close(figure)


def _panel(ax, y, groups: dict, model: str, score: str) -> None:
    ax.axvline(0, color="#888888", linewidth=0.8)
    for i, way in enumerate(CLEANINGS):
        change = [gains(group, model, way, int(score == "log-loss")) for group in groups.values()]
        ax.errorbar(
            [c.mean() for c in change], y + 0.27 - 0.18 * i, xerr=[standard_error(c) for c in change], fmt="o",
            markersize=4, linewidth=1.2, color=COLORS[way], label=way,
        )  # fmt: skip
    better = "more" if score == "accuracy" else "less"
    ax.set_title(model, fontsize=10)
    ax.set_xlabel(f"change of held-out {score}\n(cleaned − not cleaned; {better} is better)")
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25)


def report(found: dict[str, list[dict]]) -> str:
    """All tables in Markdown, featuriser by featuriser, and where and when they were measured."""
    parts = []
    for name, cells in found.items():
        for truth, said in TRUTHS.items():
            parts += [f"**{name}: flagged votes beside {said}**", found_table(cells, truth)]
        for model in cells[0]["models"]["none"]:
            parts += [f"**{name}: {model}, before and after**", model_table(cells, model)]
        checked, test = (np.mean([cell[what] for cell in cells]) for what in ("checked", "test"))
        seeds = len({cell["seed"] for cell in cells})
        parts.append(
            f"{name}: {seeds} seeds, ± one standard error; on average {checked:.0f} audited votes have a held-back "
            f"majority, and {test:.0f} pairs are tested."
        )
    facts = environment()
    versions = [f"{name} {metadata.version(name)}" for name in ("jax", "scikit-learn", "cleanlab")]
    return "\n\n".join(
        [*parts, f"{facts['date']}, {facts['cores']}-core {facts['platform']}, {', '.join(versions)}"]
    )
