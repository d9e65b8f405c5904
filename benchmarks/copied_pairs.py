"""Honest files in which rows are copies of each other, and no `groups` say so: does the fit take a copy for evidence?

`python benchmarks/copied_pairs.py [--seeds 20]`. A share of each file consists of pairs that stand c times in it, label
and all, as joins, exports by rater and oversampling make it; the other pairs stand once. People answer by a logistic
model of five normal features, whose θ has length `certainty`. Prints for each case how many fits of `fit_reward` leave
any pair out, the largest share, how many are worse than maximum likelihood by more than .005 of accuracy or .01 nats of
log-loss on fresh answers, and the worst of both. Exits with 1 where more than one fit in ten leaves a pair out.
"""

import argparse
import sys
from itertools import product

import numpy as np
from rich.progress import track
from scipy.special import expit

from robust_rlhf_jax import Pairs, fit_reward
from robust_rlhf_jax.outputs import environment

# Pairs, share of them that are copied, copies of each ((3, 20): a number between them), certainty.
CASES = tuple(product((300, 1000), (1.0, 0.6, 0.3), (2, 5, 12, (3, 20)), (2.0, 6.0)))
FEATURES, FRESH = 5, 4000
LESS_ACCURATE, LESS_LIKELY = 0.005, 0.01
# The share of the fits of a case that may leave a pair out.
OFTEN = 0.1


def answers(
    n: int, share: float, copies: int | tuple[int, int], sure: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Chosen less rejected, [n, 5] and, of fresh answers, [FRESH, 5]."""
    rng = np.random.default_rng([n, int(sure), seed, 7])
    theta = rng.standard_normal(FEATURES)
    differences = rng.standard_normal((n + FRESH, FEATURES))
    chance = expit(sure * differences @ theta / np.linalg.norm(theta))
    x = differences * np.where(rng.random(n + FRESH) < chance, 1.0, -1.0)[:, None]
    low, high = copies if isinstance(copies, tuple) else (copies, copies)
    times = rng.integers(low, high + 1, n)
    times[: n - round(share * n)] = 1
    return np.repeat(x[:n], times, axis=0)[:n], x[n:]


def losses(x: np.ndarray, fresh: np.ndarray) -> tuple[float, float, float]:
    """The share left out, accuracy less plain's, log-loss less plain's."""
    data = Pairs(x, np.zeros_like(x))
    robust, plain = fit_reward(data), fit_reward(data, 0)
    chance, plains = (
        np.clip(np.asarray(model.probability(fresh, np.zeros_like(fresh)), float), 1e-7, 1.0)
        for model in (robust, plain)
    )
    out = np.mean(np.asarray(robust.weights) < 0.5)
    accuracy = np.mean(chance > 0.5) - np.mean(plains > 0.5)
    return float(out), float(accuracy), float(np.mean(np.log(plains) - np.log(chance)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    seeds = parser.parse_args().seeds
    lines, lost = [], False
    for n, share, copies, sure in track(CASES, "cases"):
        each = (losses(*answers(n, share, copies, sure, seed)) for seed in range(seeds))
        out, accuracy, loss = np.array(list(each)).T
        worse = np.sum((accuracy < -LESS_ACCURATE) | (loss > LESS_LIKELY))
        often = f"{copies[0]} to {copies[1]}" if isinstance(copies, tuple) else copies
        lines.append(
            f"| {n} | {share:g} | {often} | {sure:g} | {np.sum(out > 0)} of {seeds} | {out.max():.3f} | "
            f"{worse} of {seeds} | {accuracy.min():+.3f} / {loss.max():+.3f} |"
        )
        lost |= np.mean(out > 0) > OFTEN
    print(
        "| pairs | copied share | copies | certainty | fits that lose a pair | most out | fits that are worse | worst |"
    )
    print("|---|---|---|---|---|---|---|---|", *lines, sep="\n")
    print(f"\n{environment()}")
    return int(lost)


if __name__ == "__main__":
    sys.exit(main())
