"""Draws the time of a primal–dual solve against N, H and d from benchmarks/results.json.

`python benchmarks/scaling_figure.py [--results FILE] [--out docs/primal_dual_scaling.png]`
"""

import argparse
import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

ROOT = Path(__file__).resolve().parent.parent
NAMES = {"n": "pairs N", "h": "horizon H", "d": "features d"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results.json")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "primal_dual_scaling.png")
    arguments = parser.parse_args()
    if not arguments.results.is_file():
        sys.exit(f"{arguments.results} does not exist: run the benchmarks with --benchmark-json first.")
    benchmarks = json.loads(arguments.results.read_text(encoding="utf-8"))["benchmarks"]
    points = [
        (b["extra_info"]["scaling"], b["stats"]["median"]) for b in benchmarks if "scaling" in b["extra_info"]
    ]
    base = points[0][0]
    figure, axes = plt.subplots(1, 3, figsize=(9, 3), sharey=True, layout="constrained")
    for ax, (name, label) in zip(axes, NAMES.items(), strict=True):
        line = sorted((s[name], t) for s, t in points if all(s[o] == base[o] for o in NAMES if o != name))
        ax.plot(*zip(*line, strict=True), "-o", color="#1f6f8b")
        ax.set(xscale="log", yscale="log", xlabel=label)
        ax.set_xticks([x for x, _ in line], [f"{x:,}" for x, _ in line])
        ax.minorticks_off()
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("seconds per solve, T = 1000")
    axes[0].set_yticks([0.1, 0.2, 0.5, 1], ["0.1", "0.2", "0.5", "1"])
    figure.suptitle("Primal–dual oracle, robust means included (others at N = 20,000, H = 5, d = 6)")
    figure.savefig(arguments.out, dpi=130)
    return 0


if __name__ == "__main__":
    sys.exit(main())
