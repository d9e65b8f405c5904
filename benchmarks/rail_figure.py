"""Draws plain against robust on the bundled rail choices and prints the figures as a table.

`python benchmarks/rail_figure.py [--out docs/rail.png]`

Five folds of people. A share ε of the training pairs is corrupted (`lab/pair_attacks/`); maximum likelihood and
`fit_reward` without ε are scored on the untouched choices of the people left out.
"""

import argparse
from pathlib import Path

import matplotlib
import numpy as np
from pair_sets import Trial, trials
from studies import SHARED

from robust_rlhf_jax.lab.pair_attacks import PAIR_ATTACKS, AttackedPairs
from robust_rlhf_jax.outputs import environment
from robust_rlhf_jax.rewards import CEILING

matplotlib.use("Agg")
from matplotlib import pyplot as plt

ROOT = Path(__file__).resolve().parent.parent
LEVELS = (0.0, 0.025, 0.05, 0.1, 0.15, 0.2)
# Plain is drawn wider and underneath, so that it shows where both agree.
FITS = (
    {"label": "maximum likelihood", "color": "#c1432e", "marker": "o", "markersize": 7, "linewidth": 3.5},
    {"label": "fit_reward without ε", "color": "#0b3c5d", "marker": "s", "markersize": 4},
)


ATTACKS = {
    "planted pairs": PAIR_ATTACKS["on_table"],
    "most confident labels flipped": PAIR_ATTACKS["confident"],
    "random labels flipped": PAIR_ATTACKS["random_flips"],
}


def accuracies(trial: Trial, attack, epsilon: float, seed: int) -> tuple[float, float]:
    """Held-out accuracy of the plain and of the robust fit."""
    theta = np.asarray(trial.fit(trial.x, trial.labels, 0.0).theta, float)
    pairs = attack(
        np.random.default_rng(seed), AttackedPairs(trial.x, trial.labels, trial.options), epsilon, theta
    )
    plain, robust = (trial.score(trial.fit(pairs.x, pairs.labels, e)).accuracy for e in (0.0, CEILING))
    return plain, robust


def measure() -> dict[str, np.ndarray]:
    """[fold, ε, fit] for each attack."""
    folds = [build() for build in trials("rail", SHARED, repeats=1, seeds=0)]
    return {
        name: np.array(
            [
                [accuracies(fold, attack, epsilon, seed) for epsilon in LEVELS]
                for seed, fold in enumerate(folds)
            ]
        )
        for name, attack in ATTACKS.items()
    }


def table(found: dict[str, np.ndarray]) -> str:
    lines = ["| corruption | ε | plain | robust |", "|---|---|---|---|"]
    for name, values in found.items():
        for epsilon, (plain, robust) in zip(LEVELS, values.mean(axis=0), strict=True):
            lines.append(f"| {name} | {epsilon:g} | {plain:.3f} | {robust:.3f} |")
    return "\n".join(lines)


def draw(found: dict[str, np.ndarray], path: Path) -> None:
    figure, axes = plt.subplots(1, len(found), figsize=(9, 3.1), sharey=True, layout="constrained")
    for ax, (name, values) in zip(axes, found.items(), strict=True):
        for i, style in enumerate(FITS):
            low, high = values[..., i].min(axis=0), values[..., i].max(axis=0)
            ax.fill_between(LEVELS, low, high, color=style["color"], alpha=0.15, linewidth=0)
            ax.plot(LEVELS, values[..., i].mean(axis=0), **style)
        ax.axhline(0.5, color="#888888", linewidth=0.8, linestyle=":")
        ax.set_title(name, fontsize=10)
        ax.set_xlabel("share of corrupted training pairs, ε")
        ax.set_xticks([0, 0.05, 0.1, 0.15, 0.2], ["0", ".05", ".1", ".15", ".2"])
        ax.set_ylim(0.25, 0.75)
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(alpha=0.25)
    axes[0].set_ylabel("accuracy on held-out\nuntouched choices")
    axes[0].text(0.0, 0.505, "chance", fontsize=8, color="#666666", va="bottom")
    axes[-1].legend(frameon=False, loc="lower left", fontsize=9)
    figure.savefig(path, dpi=150, facecolor="white")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "rail.png")
    arguments = parser.parse_args()
    found = measure()
    draw(found, arguments.out)
    print(table(found), environment(), sep="\n\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
