"""Does a careful best-of-n choose better beside lies, and as well without them? `python benchmarks/best_of_n.py`.

Preferences, corrupted or not, then sets of n candidates: options of people held out (`pair_sets.py`) or of a world of
known θ. Each choice is scored by the true reward (of choices of people: the plain fit to the honest pairs of the
people held out), as a share of what the best candidate gains over the mean of its set. Prints by n, ε and attack: best
of n by plain maximum likelihood, by θ̂ of `fit_reward`, and `best_of_n`, told ε and told nothing.
"""

import argparse
import sys
import time

import numpy as np
from pair_attacks import PAIR_ATTACKS
from pair_attacks import Pairs as PairArrays
from pair_sets import CHOICES, real_choices
from studies import SHARED

from robust_rlhf_jax import Pairs, fit_reward
from robust_rlhf_jax.algorithms import best_of_n
from robust_rlhf_jax.outputs import environment

LEVELS, SETS = (0.0, 0.05, 0.1, 0.2), 400
TRIED = ("near", "far", "on_table", "confident")


def halves(name, seed=0):
    """(training differences, labels, options, θ of the honest pairs of the other half of the people)."""
    real = real_choices(name, SHARED)
    people = np.random.default_rng(seed).permutation(np.unique(real.people))
    mine = np.isin(real.people, people[: len(people) // 2])
    x = (real.options[:, 1] - real.options[:, 0]).astype(np.float32)
    judge = fit_reward(Pairs.of_differences(x[~mine], real.labels[~mine]), 0.0).theta
    options = real.options[~mine].reshape(-1, x.shape[1]).astype(np.float32)
    return x[mine], real.labels[mine].astype(np.float32), options, np.asarray(judge, float)


def world(seed=0, n=3000, k=6):
    """The same of normal options and a known θ."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=k)
    theta *= 2.0 / np.linalg.norm(theta)
    options = rng.normal(size=(2 * n, k)).astype(np.float32)
    x = options[:n] - options[n:]
    return x, np.where(rng.logistic(size=n) < x @ theta, 1.0, -1.0).astype(np.float32), options, theta


def candidates(rng, options, n):
    return options[rng.integers(0, len(options), (SETS, n))]


def gained(sets, index, theta):
    """Mean true gain of the choice over its set's mean, as a share of the best candidate's."""
    true = sets @ theta
    chosen = np.take_along_axis(true, np.asarray(index)[:, None], axis=1)[:, 0]
    return float(np.mean(chosen - true.mean(axis=1)) / np.mean(true.max(axis=1) - true.mean(axis=1)))


def row(name, attack, epsilon, data, n):
    x, labels, options, theta = data
    rng = np.random.default_rng(0)
    honest = fit_reward(Pairs.of_differences(x, labels), 0.0).theta
    pairs = PairArrays(x, labels, options)
    attacked = PAIR_ATTACKS[attack](rng, pairs, epsilon, np.asarray(honest)) if epsilon else pairs
    seen = Pairs.of_differences(np.float32(attacked.x), attacked.labels)
    sets = candidates(rng, options, n)
    plain, robust = fit_reward(seen, 0.0), fit_reward(seen)
    told, untold = (best_of_n(seen, sets, level) for level in (epsilon, None))
    indices = [np.asarray(m.reward(sets)).argmax(axis=1) for m in (plain, robust)] + [
        told.index,
        untold.index,
    ]
    scores = [gained(sets, index, theta) for index in indices]
    careful = np.mean(np.asarray(untold.pessimistic))
    cells = " | ".join(f"{score:.3f}" for score in scores)
    print(
        f"| {name} | {attack if epsilon else 'none'} | {epsilon:g} | {n} | {cells} | {careful:.0%} |",
        flush=True,
    )
    return scores


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--sets", nargs="+", default=["world", *CHOICES], help="world, or real choices by name"
    )
    parser.add_argument("--attacks", nargs="+", default=list(TRIED), choices=list(PAIR_ATTACKS))
    parser.add_argument("--sizes", nargs="+", type=int, default=[4, 16, 64], help="candidates in a set")
    parser.add_argument("--quick", action="store_true", help="n = 16 and ε = 0 and .1 alone")
    given = parser.parse_args()
    start = time.time()
    sizes, levels = ([16], (0.0, 0.1)) if given.quick else (given.sizes, LEVELS)
    print("| data | attack | ε | n | plain | θ̂ of fit_reward | best_of_n, ε told | not told | careful |")
    print("|---|---|---|---|---|---|---|---|---|")
    harmed = []
    for name in given.sets:
        data = world() if name == "world" else halves(name)
        for epsilon in levels:
            for attack in given.attacks if epsilon else given.attacks[:1]:
                for n in sizes:
                    plain, _, told, untold = row(name, attack, epsilon, data, n)
                    if min(told, untold) < plain - 0.02:
                        harmed.append(f"{name}, {attack}, ε = {epsilon:g}, n = {n}")
    facts = environment()
    print(f"\n{facts['date']}, {facts['cores']}-core {facts['platform']}, {time.time() - start:.0f} s")
    print("".join(f"\n- worse than plain by more than .02: {what}" for what in harmed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
