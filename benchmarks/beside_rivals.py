"""`fit_reward` beside every registered estimator on attacked choices: `python benchmarks/beside_rivals.py [--folds 2]`.

Five sets of people's choices (those at hand) × nine attacks of `lab/pair_attacks/` (`RELABELLED`) × ε = .05, .1, .2,
scored on the clean choices of people left out. Prints accuracy and log-loss of plain maximum likelihood, of
`fit_reward` with ε and without ε, and the best accuracy of a rival (which one is known in hindsight only), then how
often each rival is ahead. Exits with 1 where a rival is ahead by more than .02 in more than 5 % of the rows.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from pair_sets import CHOICES, Score, Trial, trials
from rich.progress import track
from studies import LEVELS, RELABELLED, SHARED

from robust_rlhf_jax.lab.pair_attacks import PAIR_ATTACKS, AttackedPairs
from robust_rlhf_jax.lab.pair_attacks.base import sizes
from robust_rlhf_jax.outputs import environment
from robust_rlhf_jax.rewards import CEILING
from robust_rlhf_jax.rewards.registry import DEFAULT, ESTIMATORS

AHEAD, ALLOWED = 0.02, 0.05
# The ball of the rivals' θ, in columns of root mean square 1: it binds for no set here.
RADIUS = 50.0
RIVALS = tuple(name for name in ESTIMATORS if name != DEFAULT)


class Case(NamedTuple):
    """An attacked training set, and the trial that judges what is learnt from it."""

    name: str
    attack: str
    epsilon: float
    trial: Trial
    x: np.ndarray
    labels: np.ndarray


def cases(names, shared: Path, folds: int, levels=LEVELS) -> Iterator[Case]:
    """Every set, fold, attack and ε; θ known to the attacks is the clean plain fit."""
    for name in names:
        for seed, build in enumerate(trials(name, shared, 1, 0)[:folds]):
            trial = build()
            theta = np.asarray(trial.fit(trial.x, trial.labels, 0.0).theta, float)
            for attack in RELABELLED:
                for epsilon in levels:
                    found = PAIR_ATTACKS[attack](
                        np.random.default_rng(seed),
                        AttackedPairs(trial.x, trial.labels, trial.options),
                        epsilon,
                        theta,
                    )
                    yield Case(name, attack, epsilon, trial, found.x, found.labels)


@cache
def _rival(name):
    return jax.jit(
        lambda x, labels, epsilon: ESTIMATORS[name].estimate(x, labels, epsilon, radius=RADIUS).theta
    )


def rivals(case: Case) -> dict[str, Score]:
    """Every registered estimator, given ε, in columns of root mean square 1."""
    size = sizes(case.x)
    given = [jnp.asarray(part, jnp.float32) for part in (case.x / size, case.labels, case.epsilon)]
    return {name: case.trial.score(np.asarray(_rival(name)(*given)) / size) for name in RIVALS}


def shown(score: Score) -> str:
    return f"{score.accuracy:.3f} / {score.log_loss:.3f}"


def main(words=None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folds", type=int, default=2, help="of the five folds of people")
    parser.add_argument("--sets", nargs="+", choices=CHOICES, default=CHOICES)
    parser.add_argument("--shared", type=Path, default=SHARED, help="folder of the sets that are not bundled")
    given = parser.parse_args(words)
    names = [n for n in given.sets if n == "rail" or (given.shared / f"{n}.csv.gz").exists()]
    print("| set | attack | ε | plain | with ε | without ε | best rival |\n|---|---|---|---|---|---|---|")
    ahead, rows, expensive, of_set = Counter(), 0, 0, ""
    for case in track(list(cases(names, given.shared, given.folds)), "cases"):
        if case.name != of_set:
            # Nothing of another shape is called again, and a process may hold 65,530 maps of memory.
            jax.clear_caches()
            of_set = case.name
        fits = [case.trial.fit(case.x, case.labels, e) for e in (0.0, case.epsilon, CEILING)]
        plain, told, nothing = map(case.trial.score, fits)
        others = rivals(case)
        best = max(others, key=lambda name: others[name].accuracy)
        ahead.update(name for name, score in others.items() if score.accuracy > told.accuracy + AHEAD)
        ahead["any of them, in hindsight"] += others[best].accuracy > told.accuracy + AHEAD
        rows, expensive = rows + 1, expensive + (told.log_loss > plain.log_loss + 0.05)
        cells = [case.name, case.attack, f"{case.epsilon:g}", *map(shown, (plain, told, nothing))]
        print("| " + " | ".join([*cells, f"{best} {others[best].accuracy:.3f}"]) + " |", flush=True)
    print(f"\nOf {rows} rows, ahead of `fit_reward` with ε by more than {AHEAD}: {dict(ahead)}.")
    print(f"Log-loss with ε more than .05 above plain's: {expensive} rows. {environment()}")
    return int(any(ahead[name] > ALLOWED * rows for name in RIVALS))


if __name__ == "__main__":
    sys.exit(main())
