"""What the robust reward does to honest pairs: `python benchmarks/no_harm.py [--repeats 5] [--seeds 20] [--out FILE]`.

`fit_reward` beside plain maximum likelihood, with ε = .05, .1, .2 and without ε, on clean labels and on labels of
which a share is flipped at random, the same for both (with that share as ε and without ε). Real choices (folds of
people), the delivery grid and four families of worlds; of the ε given, each column shows the one that does worst.

Exits with 1 if a bar fails: accuracy within .005, log-loss within .01, return within .01 of plain maximum likelihood,
and less than 5 % of the honest pairs of any rare group left out.
"""

import argparse
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pair_sets import ORIENTATIONS, Score, Trial, available, trials
from rich.progress import track
from studies import LEVELS, SHARED, short

from robust_rlhf_jax.outputs import environment
from robust_rlhf_jax.rewards import CEILING

ACCURACY, LOG_LOSS, RETURN, REMOVED = 0.005, 0.01, 0.01, 0.05
# Of honest labels: expected calibration error of the trials together.
CALIBRATION = 0.05
# A rare group: fewer than half of the pairs, and as many as make a share of 5 % mean something.
RARE, COUNTED = 0.5, 100


class Outcome(NamedTuple):
    """One robust fit beside the plain one; `removed`: share of honest pairs left out, in the worst rare group."""

    flipped: float
    told: float | None
    plain: Score
    robust: Score
    removed: float
    touched: bool


def outcomes(trial: Trial, seed: int, levels=LEVELS) -> list[Outcome]:
    """Every share of flips and every ε told, for one trial."""
    found = []
    order = np.random.default_rng(seed).permutation(len(trial.labels))
    for flipped in (0.0, *levels):
        liars = order[: int(flipped * len(order))]
        labels = trial.labels.copy()
        labels[liars] *= -1
        plain = trial.score(trial.fit(trial.x, labels, 0.0))
        honest = np.ones(len(labels), bool)
        honest[liars] = False
        known = {}
        for told in (*((flipped,) if flipped else levels), None):
            ceiling = CEILING if told is None else told
            if ceiling not in known:
                fit = trial.fit(trial.x, labels, ceiling)
                out = 1.0 - np.asarray(fit.weights)
                known[ceiling] = (
                    trial.score(fit),
                    worst_rare_group(out, trial.touched, honest),
                    out.any(),
                )
            found.append(Outcome(flipped, told, plain, *known[ceiling]))
    return found


def worst_rare_group(out, touched, honest) -> float:
    """Largest share of the honest pairs of a rare group that were left out; of all honest pairs if none is rare."""
    sizes = honest.astype(float) @ touched
    rare = (sizes < RARE * honest.sum()) & (sizes >= COUNTED)
    if not rare.any():
        return float(out[honest].mean())
    return float(((out * honest) @ touched[:, rare] / sizes[rare]).max())


class Row(NamedTuple):
    """One share of flips on one set: plain, the robust fit at the ε where it does worst, and the bars that fail."""

    name: str
    flipped: float
    plain: Score
    robust: Score
    worst_fit: float
    touched: float
    removed: float
    failed: tuple[str, ...]


def row(name: str, flipped: float, found: list[Outcome]) -> Row:
    """Means over trials for each ε told; then the worst ε in each column."""
    told = sorted({outcome.told for outcome in found}, key=str)
    by = [[o for o in found if o.told == t] for t in told]
    plain = Score(*np.mean([o.plain for o in by[0]], axis=0))
    means = np.array([np.mean([o.robust for o in same], axis=0) for same in by])
    worst = max((Score(*mean) for mean in means), key=lambda score: score.calibration)
    robust = Score(means[:, 0].min(), means[:, 1].max(), means[:, 2].min(), *worst[3:])
    removed = max(o.removed for o in found)
    failed = {
        "accuracy": robust.accuracy < plain.accuracy - ACCURACY,
        "log-loss": robust.log_loss > plain.log_loss + LOG_LOSS,
        "return": robust.value < plain.value - RETURN,
        "removed": removed >= REMOVED,
        "calibration": flipped == 0 and robust.calibration > CALIBRATION,
    }
    worst_fit = min(o.robust.accuracy - o.plain.accuracy for o in found)
    touched = max(np.mean([o.touched for o in same]) for same in by)
    return Row(
        name,
        flipped,
        plain,
        robust,
        worst_fit,
        touched,
        removed,
        tuple(k for k, bad in failed.items() if bad),
    )


HEAD = (
    "| set | flipped | accuracy | log-loss | return | calibration | worst fit | fits with pairs out | "
    "worst rare group | bars |\n" + "|---|---|---|---|---|---|---|---|---|---|"
)


def line(row: Row) -> str:
    pairs = [f"{short(a)} / {short(b)}" for a, b in zip(row.plain, row.robust, strict=True)]
    cells = [row.name, f"{row.flipped:g}", *pairs[:2], "" if np.isnan(row.plain.value) else pairs[2]]
    cells.append(f"{short(row.plain.calibration)} / {short(row.robust.calibration)}")
    cells += [f"{row.worst_fit:+.3f}", f"{row.touched:.0%}", f"{row.removed:.1%}"]
    return "| " + " | ".join([*cells, "FAILS: " + ", ".join(row.failed) if row.failed else "pass"]) + " |"


def rows_of(
    name: str, shared: Path, repeats: int, seeds: int, levels=LEVELS, orientation=ORIENTATIONS[0]
) -> list[Row]:
    """All rows of a set, a progress line with the time left meanwhile."""
    found = []
    for seed, build in enumerate(track(trials(name, shared, repeats, seeds), name)):
        found += outcomes(build().turned(orientation), seed, levels)
    return [row(name, share, [o for o in found if o.flipped == share]) for share in (0.0, *levels)]


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="of the 5 folds of people")
    parser.add_argument("--seeds", type=int, default=20, help="worlds of each family, and delivery grids")
    parser.add_argument("--quick", action="store_true", help="one repeat and two seeds")
    parser.add_argument("--sets", nargs="+", help="only these sets")
    parser.add_argument(
        "--orientations",
        nargs="+",
        choices=ORIENTATIONS,
        default=ORIENTATIONS,
        help="which option stands first",
    )
    parser.add_argument("--shared", type=Path, default=SHARED, help="folder of the sets that are not bundled")
    parser.add_argument("--out", type=Path, help="write the table to this file, too")
    return parser


def main(words=None) -> int:
    arguments = parser().parse_args(words)
    repeats, seeds = (1, 2) if arguments.quick else (arguments.repeats, arguments.seeds)
    names, skipped = available(arguments.shared)
    lines, failed = [*skipped, "", HEAD] if skipped else [HEAD], False
    print("\n".join(lines), flush=True)
    for orientation in arguments.orientations:
        lines.append(f"\nOptions stand {orientation}:\n")
        print(lines[-1], flush=True)
        for name in arguments.sets or names:
            for found in rows_of(name, arguments.shared, repeats, seeds, orientation=orientation):
                lines.append(line(found))
                failed |= bool(found.failed)
                print(lines[-1], flush=True)
    lines += ["", f"{repeats} × 5 folds of people, {seeds} worlds. {environment()}"]
    print("\n".join(lines[-2:]))
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
