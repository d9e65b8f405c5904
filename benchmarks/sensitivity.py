"""What each constant of `RobustFit` decides: `python benchmarks/sensitivity.py [--folds 1] [--sets NAME …]`.

Every constant is halved and doubled in turn, and every proposal left out, the others as they are. Attacked choices as
in `beside_rivals.py`, and the clean sets: means of accuracy and log-loss with ε, rows whose log-loss exceeds plain's by
more than .05, and clean or randomly flipped sets of which any pair was left out.
"""

import argparse
import dataclasses
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from beside_rivals import Case, cases
from pair_sets import CHOICES, trials
from rich.progress import track
from studies import SHARED

from robust_rlhf_jax.outputs import environment
from robust_rlhf_jax.rewards import RobustFit, fit_differences

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
    return found


def measured(every: list[Case], config: RobustFit) -> tuple[float, float, int, int]:
    """(mean accuracy, mean log-loss, rows whose log-loss is above plain's by .05, honest sets that lost pairs)."""
    scores, expensive, lost = [], 0, 0
    for case in every:
        given = [jnp.asarray(part, jnp.float32) for part in (case.x, case.labels)]
        plain, found = (
            fit_differences(*given, jnp.float32(e), None, config) for e in (0.0, case.epsilon or 0.2)
        )
        scores.append(case.trial.score(found))
        expensive += scores[-1].log_loss > case.trial.score(plain).log_loss + 0.05
        lost += case.attack in HONEST and bool(np.any(np.asarray(found.weights) < 1))
    return *np.mean([score[:2] for score in scores], axis=0), expensive, lost


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
    print("| constant | accuracy | log-loss | rows above plain + .05 | honest sets that lost pairs |")
    print("|---|---|---|---|---|")
    for name, config in track(variants().items(), "variants"):
        accuracy, log_loss, expensive, lost = measured(every, config)
        print(f"| {name} | {accuracy:.4f} | {log_loss:.4f} | {expensive} | {lost} |", flush=True)
    print(f"\n{len(every)} fits a row. {environment()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
