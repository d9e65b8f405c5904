"""Honest choices between a few options that recur and have a quality that no feature tells.

`python benchmarks/few_options.py [--seeds 12]`. n choices between M options with three features; the utility is
temperature⁻¹·(θᵀx + quality), with a quality of standard deviation `sd` that is not in the file. Nothing is corrupt.
Prints for each case how many of the fits leave out more than 1 % of the pairs, the mean share, and how accuracy and
log-loss on fresh choices differ from those of maximum likelihood: by `fit_reward`, which sees that comparisons recur,
and by the same fit without knowing it. Exits with 1 where `fit_reward` leaves out more than
a fifth as many pairs in the mean of all cases.
"""

import argparse
import sys
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from rich.progress import track
from scipy.special import expit

from robust_rlhf_jax import Pairs, fit_reward
from robust_rlhf_jax.outputs import environment
from robust_rlhf_jax.rewards import CEILING, fit_differences, plain_fit

# Options M, standard deviation of the quality, inverse temperature, choices n.
CASES = (
    (6, 1.0, 1.0, 300), (6, 1.0, 2.0, 1000), (10, 0.5, 2.0, 1000), (10, 1.0, 1.0, 1000), (10, 1.0, 3.0, 300),
    (10, 1.0, 3.0, 1000), (10, 1.0, 3.0, 4000), (10, 2.0, 1.0, 1000), (20, 1.0, 3.0, 1000), (20, 2.0, 3.0, 1000),
    (40, 1.0, 3.0, 1000), (40, 2.0, 2.0, 3000),
)  # fmt: skip
THETA, FRESH = np.array([1.0, 0.65, 0.3]), 4000
# The share of the pairs from which on a fit loses some, and the most that it may be of the unaware fit's share.
SOME, MOST = 0.01, 0.2


class Choices(NamedTuple):
    """`x` [N, 3]: chosen less rejected; `fresh` [M, 3]: others of the same people, likewise."""

    x: np.ndarray
    fresh: np.ndarray


def drawn(options: int, sd: float, sharpness: float, n: int, seed: int) -> Choices:
    rng = np.random.default_rng([seed, options, int(10 * sd), int(sharpness)])
    features, quality = rng.standard_normal((options, 3)), sd * rng.standard_normal(options)
    first = rng.integers(options, size=n + FRESH)
    second = (first + rng.integers(1, options, n + FRESH)) % options
    utility = sharpness * (features @ THETA + quality)
    wins = rng.random(n + FRESH) < expit(utility[first] - utility[second])
    x = (features[first] - features[second]) * np.where(wins, 1.0, -1.0)[:, None]
    return Choices(x[:n], x[n:])


def losses(choices: Choices) -> dict[str, tuple[float, float, float]]:
    """The share left out, accuracy less plain's, log-loss less plain's; of both fits."""
    x, ones = jnp.asarray(choices.x, jnp.float32), jnp.ones(len(choices.x), jnp.float32)
    margins = choices.fresh @ np.asarray(plain_fit(x, ones)[0], float)
    fresh = jnp.asarray(choices.fresh, jnp.float32)
    aware = fit_reward(Pairs(choices.x, np.zeros_like(choices.x)))
    unaware = fit_differences(x, ones, jnp.float32(CEILING))
    found = {}
    for name, fit, chance in (
        ("fit_reward", aware, aware.probability(fresh, jnp.zeros_like(fresh))),
        ("unaware", unaware, unaware.probability(fresh)),
    ):
        chance = np.clip(np.asarray(chance, float), 1e-12, 1.0)
        loss = np.mean(np.logaddexp(0.0, -margins))
        found[name] = (
            float(fit.epsilon),
            float(np.mean(chance > 0.5) - np.mean(margins > 0)),
            float(-np.mean(np.log(chance)) - loss),
        )
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=12)
    seeds = parser.parse_args().seeds
    lines, shares = [], {"fit_reward": [], "unaware": []}
    for case in track(CASES, "cases"):
        runs = [losses(drawn(*case, seed)) for seed in range(seeds)]
        cells = []
        for name in ("fit_reward", "unaware"):
            out, accuracy, loss = np.array([run[name] for run in runs]).T
            cells += [
                f"{np.sum(out > SOME)} of {seeds}",
                f"{out.mean():.3f}",
                f"{accuracy.mean():+.4f} / {loss.mean():+.4f}",
            ]
            shares[name].append(out.mean())
        lines.append("| " + " | ".join([*(f"{value:g}" for value in case), *cells]) + " |")
    print("| options | quality | 1/temperature | choices | fits that lose 1 % | share out | accuracy / log-loss "
          "| unaware: fits that lose 1 % | share out | accuracy / log-loss |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|", *lines, sep="\n")
    aware, unaware = (np.mean(found) for found in shares.values())
    print(
        f"\nIn the mean of all cases {aware:.3f} of the pairs leave; unaware, {unaware:.3f}. {environment()}"
    )
    return int(aware > MOST * unaware)


if __name__ == "__main__":
    sys.exit(main())
