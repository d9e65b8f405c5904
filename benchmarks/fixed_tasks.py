"""Honest answers to a questionnaire: everybody is asked the same few choices, and some answers are slips.

`python benchmarks/fixed_tasks.py [--seeds 12]`. n answers to T choices between two options with four attributes of
three levels and an alternative-specific constant. People answer by a logistic model of utility times `certainty`; a
share of the answers, the slips, is the toss of a coin. Nobody deceives. Prints for each case how many of the fits of
`fit_reward` leave out more than 1 % of the answers, the mean share, and how accuracy and log-loss on fresh answers
differ from those of maximum likelihood: the mean and the worst. Exits with 1 where log-loss is worse than plain's by
more than .01 in the mean of a case.
"""

import argparse
import sys

import numpy as np
from rich.progress import track
from scipy.special import expit

from robust_rlhf_jax import Pairs, fit_reward
from robust_rlhf_jax.outputs import environment

# Tasks T, certainty, share of slips, answers n.
CASES = (
    (12, 1.0, 0.0, 300), (12, 1.0, 0.0, 1000), (12, 6.0, 0.0, 1000), (12, 2.0, 0.04, 1000), (12, 6.0, 0.04, 300),
    (12, 6.0, 0.04, 1000), (36, 6.0, 0.04, 1000),
)  # fmt: skip
ATTRIBUTES, FRESH = 4, 6000
# The share of the answers from which on a fit loses some, and the most by which log-loss may be worse.
SOME, WORSE = 0.01, 0.01


def answers(tasks: int, certainty: float, slips: float, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Chosen less rejected, [n, 5] and [FRESH, 5]."""
    rng = np.random.default_rng([seed, tasks, int(10 * certainty), int(100 * slips), n])
    levels = rng.integers(-1, 2, (tasks, 2, ATTRIBUTES))
    differences = np.column_stack([levels[:, 0] - levels[:, 1], np.ones(tasks)])
    theta = rng.standard_normal(ATTRIBUTES + 1)
    asked = np.concatenate([np.arange(n) % tasks, rng.integers(tasks, size=FRESH)])
    utility = certainty * differences[asked] @ theta / np.linalg.norm(theta)
    chance = (1.0 - slips) * expit(utility) + 0.5 * slips
    x = differences[asked] * np.where(rng.random(len(asked)) < chance, 1.0, -1.0)[:, None]
    return x[:n], x[n:]


def losses(x: np.ndarray, fresh: np.ndarray) -> tuple[float, float, float]:
    """The share left out, accuracy less plain's, log-loss less plain's."""
    data = Pairs(x, np.zeros_like(x))
    robust, plain = fit_reward(data), fit_reward(data, 0)
    # In single precision a probability of fresh answers may round to 0.
    chance, plains = (
        np.clip(np.asarray(model.probability(fresh, np.zeros_like(fresh)), float), 1e-7, 1.0)
        for model in (robust, plain)
    )
    accuracy = np.mean(chance > 0.5) - np.mean(plains > 0.5)
    return float(robust.epsilon), float(accuracy), float(np.mean(np.log(plains) - np.log(chance)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=12)
    seeds = parser.parse_args().seeds
    lines, worse = [], False
    for case in track(CASES, "cases"):
        out, accuracy, loss = np.array([losses(*answers(*case, seed)) for seed in range(seeds)]).T
        cells = [
            f"{np.sum(out > SOME)} of {seeds}",
            f"{out.mean():.3f}",
            f"{accuracy.mean():+.4f} / {loss.mean():+.4f}",
            f"{accuracy.min():+.3f} / {loss.max():+.3f}",
        ]
        worse |= loss.mean() > WORSE
        lines.append("| " + " | ".join([*(f"{value:g}" for value in case), *cells]) + " |")
    print(
        "| tasks | certainty | slips | answers | fits that lose 1 % | share out | accuracy / log-loss | worst |"
    )
    print("|---|---|---|---|---|---|---|---|", *lines, sep="\n")
    print(f"\n{environment()}")
    return int(worse)


if __name__ == "__main__":
    sys.exit(main())
