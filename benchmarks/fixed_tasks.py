"""Answers to a questionnaire: everybody is asked the same few choices, some answers are slips, some may be planted.

`python benchmarks/fixed_tasks.py [--seeds 12] [--most 0.0625]`. n answers to T choices between two options with four
attributes of three levels and an alternative-specific constant. People answer by a logistic model of utility times
`certainty`; a share of the answers, the slips, is the toss of a coin. In some cases the attributes miss a quality of
the options: the utility of each choice is off by a normal number of standard deviation `missed`. In others a share of
the answers is planted: one choice more, in which every attribute speaks for the option that is rejected. Prints for
each case how many fits of `fit_reward` leave out more than 1 % of the honest answers, the mean share of those that is
left out, and how accuracy and log-loss on fresh honest answers differ from those of maximum likelihood: the mean and
the worst. `--most`: the largest share of slips that a fit allows for (`rewards/slips.py`), which it halves down to
1/64. Exits with 1 where log-loss is worse than plain's by more than .01 in the mean of a case without planted
answers.
"""

import argparse
import sys
from typing import NamedTuple

import numpy as np
from rich.progress import track
from scipy.special import expit

from robust_rlhf_jax import Pairs, fit_reward
from robust_rlhf_jax.outputs import environment
from robust_rlhf_jax.rewards import slips

ATTRIBUTES, FRESH = 4, 6000
# The share of the honest answers from which on a fit loses some, and the most by which log-loss may be worse.
SOME, WORSE = 0.01, 0.01


class Case(NamedTuple):
    tasks: int
    certainty: float
    slips: float
    answers: int
    missed: float = 0.0
    planted: float = 0.0


CASES = (
    Case(12, 1.0, 0.0, 300), Case(12, 1.0, 0.0, 1000), Case(12, 6.0, 0.0, 1000), Case(12, 2.0, 0.04, 1000),
    Case(12, 6.0, 0.04, 300), Case(12, 6.0, 0.04, 1000), Case(36, 6.0, 0.04, 1000), Case(12, 6.0, 0.15, 1000),
    *(Case(tasks, 3.0, 0.0, n, quality) for tasks in (8, 12, 24) for quality in (1.0, 2.0) for n in (300, 1000)),
    *(Case(tasks, 6.0, 0.04, 1000, 0.0, share) for tasks in (12, 36) for share in (0.01, 0.02, 0.05, 0.1)),
)  # fmt: skip


def answers(case: Case, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Chosen less rejected, [n, 5] and, of fresh honest answers, [FRESH, 5]; which of the first are honest [n]."""
    tasks, certainty, share, n, missed, planted = case
    rng = np.random.default_rng([seed, tasks, int(10 * certainty), int(100 * share), n])
    levels = rng.integers(-1, 2, (tasks, 2, ATTRIBUTES))
    differences = np.column_stack([levels[:, 0] - levels[:, 1], np.ones(tasks)])
    theta = rng.standard_normal(ATTRIBUTES + 1)
    asked = np.concatenate([np.arange(n) % tasks, rng.integers(tasks, size=FRESH)])
    utility = certainty * differences[asked] @ theta / np.linalg.norm(theta)
    if missed:
        utility += missed * rng.standard_normal(tasks)[asked]
    chance = (1.0 - share) * expit(utility) + 0.5 * share
    x = differences[asked] * np.where(rng.random(len(asked)) < chance, 1.0, -1.0)[:, None]
    honest = np.ones(n, bool)
    honest[rng.permutation(n)[: round(planted * n)]] = False
    x[:n][~honest] = -np.sign(theta) * [*[2.0] * ATTRIBUTES, 1.0]
    return x[:n], x[n:], honest


def losses(x: np.ndarray, fresh: np.ndarray, honest: np.ndarray) -> tuple[float, float, float]:
    """The share of the honest answers that is left out, accuracy less plain's, log-loss less plain's."""
    data = Pairs(x, np.zeros_like(x))
    robust, plain = fit_reward(data), fit_reward(data, 0)
    # In single precision a probability of fresh answers may round to 0.
    chance, plains = (
        np.clip(np.asarray(model.probability(fresh, np.zeros_like(fresh)), float), 1e-7, 1.0)
        for model in (robust, plain)
    )
    out = np.mean(np.asarray(robust.weights)[honest] < 0.5)
    accuracy = np.mean(chance > 0.5) - np.mean(plains > 0.5)
    return float(out), float(accuracy), float(np.mean(np.log(plains) - np.log(chance)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--most", type=float, default=slips.SHARES[0])
    asked = parser.parse_args()
    seeds, halvings = asked.seeds, round(np.log2(asked.most * 64))
    slips.SHARES = tuple(2.0**halving / 64 for halving in range(halvings, -1, -1))
    lines, worse = [], False
    for case in track(CASES, "cases"):
        out, accuracy, loss = np.array([losses(*answers(case, seed)) for seed in range(seeds)]).T
        cells = [
            f"{np.sum(out > SOME)} of {seeds}",
            f"{out.mean():.3f}",
            f"{accuracy.mean():+.4f} / {loss.mean():+.4f}",
            f"{accuracy.min():+.3f} / {loss.max():+.3f}",
        ]
        worse |= case.planted == 0 and loss.mean() > WORSE
        lines.append("| " + " | ".join([*(f"{value:g}" for value in case), *cells]) + " |")
    given = " | ".join(Case._fields)
    print(f"| {given} | fits that lose 1 % | share out | accuracy / log-loss | worst |")
    print("|---|---|---|---|---|---|---|---|---|---|", *lines, sep="\n")
    print(f"\n{environment()}")
    return int(worse)


if __name__ == "__main__":
    sys.exit(main())
