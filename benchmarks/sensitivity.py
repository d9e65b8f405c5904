"""What each constant of `RobustFit` decides: `python benchmarks/sensitivity.py [--folds 1] [--sets NAME …]`.

Every constant is halved and doubled in turn, and every proposal left out, the others as they are. Attacked choices as
in `beside_rivals.py`, and the clean sets, each with its ε: the columns of `COLUMNS`.
"""

import argparse
import dataclasses
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from beside_rivals import Case, cases
from pair_sets import CHOICES, trials
from rich.progress import track
from studies import SHARED

from robust_rlhf_jax.outputs import environment
from robust_rlhf_jax.rewards import RewardFit, RobustFit, fit_differences
from robust_rlhf_jax.rewards.coordinates import unit_free
from robust_rlhf_jax.rewards.fit import fit_with_alternative
from robust_rlhf_jax.rewards.scarcity import scarce_directions

HONEST = ("none", "random_flips")


def variants() -> dict[str, RobustFit]:
    """The configuration as it is, with each constant halved and doubled, and without each proposal."""
    found, usual = {"as it is": RobustFit()}, RobustFit()
    for field in dataclasses.fields(usual):
        value = getattr(usual, field.name)
        if isinstance(value, tuple):
            continue
        for times in (0.5, 2.0):
            changed = type(value)(times * value)
            found[f"{field.name} {value:g} → {changed:g}"] = dataclasses.replace(
                usual, **{field.name: changed}
            )
    for name in usual.proposals:
        rest = tuple(other for other in usual.proposals if other != name)
        found[f"without “{name}”"] = dataclasses.replace(usual, proposals=rest)
    # Arrays, so that a constant of another value compiles nothing.
    return {name: jax.tree.map(jnp.float32, config) for name, config in found.items()}


# What is counted or averaged over the rows.
COLUMNS = (
    "accuracy",
    "log-loss",
    "rows above plain + .05",
    "honest sets that lost pairs",
    "intervals that hold ε",
    "mean width",
    "second reward shown",
    "directions set aside",
)


scarce_of = jax.jit(scarce_directions)


def set_aside(x, found: RewardFit, epsilon, config: RobustFit) -> int:
    """Directions of θ on which `robust_policy` would not rely: scarce, or doubted."""
    scarce = scarce_of(unit_free(x, jnp.ones(len(x))).rows, epsilon, config)
    return sum(int(jnp.sum(jnp.any(rows != 0, axis=1))) for rows in (scarce, found.doubted))


def measured(every: list[Case], config: RobustFit) -> list[float]:
    """The values of `COLUMNS`."""
    rows = []
    for case in every:
        x, labels = (jnp.asarray(part, jnp.float32) for part in (case.x, case.labels))
        epsilon = jnp.float32(case.epsilon or 0.2)
        plain = case.trial.score(fit_differences(x, labels, jnp.float32(0.0), None, config))
        found, other = fit_with_alternative(x, labels, epsilon, None, config)
        score = case.trial.score(found)
        low, high = (float(end) for end in found.interval)
        rows.append([
            score.accuracy,
            score.log_loss,
            score.log_loss > plain.log_loss + 0.05,
            case.attack in HONEST and bool(np.any(np.asarray(found.weights) < 1)),
            low - 1e-6 <= case.epsilon <= high + 1e-6,
            high - low,
            bool(other.exists),
            set_aside(x, found, epsilon, config),
        ])  # fmt: skip
    total = np.sum(rows, axis=0)
    averaged = np.array([True, True, False, False, False, True, False, True])
    return list(np.where(averaged, total / len(every), total))


def main(words=None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folds", type=int, default=1, help="of the five folds of people")
    parser.add_argument("--sets", nargs="+", choices=CHOICES, default=("rail", "electricity", "cars_us"))
    parser.add_argument("--shared", type=Path, default=SHARED, help="folder of the sets that are not bundled")
    given = parser.parse_args(words)
    names = [n for n in given.sets if n == "rail" or (given.shared / f"{n}.csv.gz").exists()]
    every = list(cases(names, given.shared, given.folds))
    for name in names:
        for build in trials(name, given.shared, 1, 0)[: given.folds]:
            trial = build()
            every.append(Case(name, "none", 0.0, trial, trial.x, trial.labels))
    print("| constant | " + " | ".join(COLUMNS) + " |")
    print("|---" * (1 + len(COLUMNS)) + "|")
    for name, config in track(variants().items(), "variants"):
        if name.startswith("without"):
            # Other proposals are other programs, of which the last ones' memory is needed.
            jax.clear_caches()
        accuracy, log_loss, expensive, lost, hold, width, shown, aside = measured(every, config)
        counts = f"{expensive:.0f} | {lost:.0f} | {hold:.0f} | {width:.3f} | {shown:.0f} | {aside:.2f}"
        print(f"| {name} | {accuracy:.4f} | {log_loss:.4f} | {counts} |", flush=True)
    print(f"\n{len(every)} fits a row. {environment()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
