"""Who chooses the best of n answers where preferences are corrupted? `python benchmarks/best_of_n.py`.

Preferences, corrupted or not, and sets of n candidates: options of people held out (`pair_sets.py`), or of worlds whose
θ is known: `few` has 300 pairs with 30 features; in `rare` one pair in fifty shows the last feature, in `unseen` none
but the planted ones, and candidates differ in it. A choice is scored by the true reward (of people: the plain fit to
the honest pairs of those held out): its gain over the mean of its set, as a share of what the best candidate gains.
Compared: best of n by plain maximum likelihood; InferenceTimePessimism on the same reward, with the β that the true
reward likes best; best of n by θ̂ of `fit_reward`; `best_of_n` told ε, and told nothing. Of honest pairs it is told .1.
"""

import argparse
import sys
import time

import numpy as np
from pair_sets import CHOICES, real_choices
from studies import SHARED, short

from robust_rlhf_jax import Pairs, fit_reward
from robust_rlhf_jax.algorithms import fit_reranker
from robust_rlhf_jax.lab.pair_attacks import PAIR_ATTACKS, AttackedPairs
from robust_rlhf_jax.lab.pair_attacks.base import planted
from robust_rlhf_jax.outputs import environment

SETS = 400
TRIED = ("near", "far", "leverage", "on_table", "confident_flips")
# β from nearly the best candidate alone to nearly all alike, in standard deviations of the reward.
BETAS = (0.001, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
# By world: the share of the honest pairs that show the last feature, pairs, features.
WORLDS = {"world": (1.0, 3000, 6), "few": (1.0, 300, 30), "rare": (0.02, 3000, 6), "unseen": (0.0, 3000, 6)}
COLUMNS = ("plain", "InferenceTimePessimism", "θ̂", "`best_of_n`, ε told", "not told")


def halves(name, seed=0):
    """(training differences, labels, options, θ of the honest pairs of the other half of the people)."""
    real = real_choices(name, SHARED)
    people = np.random.default_rng(seed).permutation(np.unique(real.people))
    mine = np.isin(real.people, people[: len(people) // 2])
    x = (real.options[:, 1] - real.options[:, 0]).astype(np.float32)
    judge = fit_reward(Pairs.of_differences(x[~mine], real.labels[~mine]), 0.0).theta
    options = real.options[~mine].reshape(-1, x.shape[1]).astype(np.float32)
    return x[mine], real.labels[mine].astype(np.float32), options, np.asarray(judge, float)


def world(shown, n, k, seed=0):
    """The same of normal options and a known θ; a share of the pairs has `shown` the last feature."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=k)
    theta *= 2.0 / np.linalg.norm(theta)
    options = rng.normal(size=(2 * n, k)).astype(np.float32)
    x = options[:n] - options[n:]
    x[int(shown * n) :, -1] = 0.0
    return x, np.where(rng.logistic(size=n) < x @ theta, 1.0, -1.0).astype(np.float32), options, theta


def unseen(rng, pairs, epsilon, theta):
    """Pairs that differ in the last feature alone, in which the worse one wins."""
    row = np.zeros(len(theta))
    row[-1] = -3.0 * np.sign(theta[-1])
    return planted(rng, pairs, epsilon, row, 1.0)


def inference_time_pessimism(reward, beta):
    """π_i = max(r_i − λ, 0)/(nβ), λ such that they sum to 1: of n samples (Huang et al. 2025)."""
    scaled = reward / (reward.shape[1] * beta)
    high = -np.sort(-scaled, axis=1)
    numbers = np.arange(1, reward.shape[1] + 1)
    level = (np.cumsum(high, axis=1) - 1.0) / numbers
    last = np.sum(high > level, axis=1) - 1
    return np.maximum(scaled - level[np.arange(len(level)), last][:, None], 0.0)


def gained(true, probability):
    """Mean true gain of the choice over its set's mean, as a share of the best candidate's."""
    mean = true.mean(axis=1)
    return float(np.mean(np.sum(probability * true, axis=1) - mean) / np.mean(true.max(axis=1) - mean))


def alone(index, n):
    return np.eye(n)[np.asarray(index)]


def rows(attack, epsilon, data, sizes):
    """By n: the scores of `COLUMNS`, and the share of the sets in which the one told nothing is pessimistic."""
    x, labels, options, theta = data
    attacked = AttackedPairs(x, labels, options)
    if attack == "unseen":
        attacked = unseen(np.random.default_rng(0), attacked, epsilon, theta)
    elif attack != "none":
        honest = np.asarray(fit_reward(Pairs.of_differences(x, labels), 0.0).theta)
        attacked = PAIR_ATTACKS[attack](np.random.default_rng(0), attacked, epsilon, honest)
    seen = Pairs.of_differences(np.float32(attacked.x), attacked.labels)
    plain, robust = fit_reward(seen, 0.0), fit_reward(seen)
    rerankers = [fit_reranker(seen, level) for level in (epsilon or 0.1, None)]
    for n in sizes:
        sets = options[np.random.default_rng(n).integers(0, len(options), (SETS, n))]
        true, promised = sets @ theta, np.asarray(plain.reward(sets), float)
        regularised = max(
            gained(true, inference_time_pessimism(promised, beta * promised.std())) for beta in BETAS
        )
        told, untold = (reranker.choose(sets) for reranker in rerankers)
        greedy = [
            gained(true, alone(r.argmax(axis=1), n)) for r in (promised, np.asarray(robust.reward(sets)))
        ]
        careful = [gained(true, np.asarray(choice.probability)) for choice in (told, untold)]
        yield n, [greedy[0], regularised, greedy[1], *careful], float(np.mean(np.asarray(untold.pessimistic)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="+", default=[*WORLDS, *CHOICES], help="worlds, or real choices")
    parser.add_argument("--attacks", nargs="+", default=list(TRIED), choices=list(PAIR_ATTACKS))
    parser.add_argument("--levels", nargs="+", type=float, default=[0.0, 0.1], help="shares ε of the pairs")
    parser.add_argument("--sizes", nargs="+", type=int, default=[64], help="candidates in a set")
    given = parser.parse_args()
    start, found = time.time(), {}
    print(f"| pairs | attack | ε | n | {' | '.join(COLUMNS)} | pessimistic |\n" + "|---" * 10 + "|")
    for name in given.sets:
        data = world(*WORLDS[name]) if name in WORLDS else halves(name)
        attacks = ["unseen"] if name == "unseen" else given.attacks
        for epsilon in given.levels:
            for attack in attacks if epsilon else ["none"]:
                for n, scores, careful in rows(attack, epsilon, data, given.sizes):
                    found[name, attack, epsilon, n] = scores
                    cells = " | ".join(short(score) for score in scores)
                    print(f"| {name} | {attack} | {epsilon:g} | {n} | {cells} | {careful:.0%} |", flush=True)
    facts = environment()
    print(f"\n{facts['date']}, {facts['cores']}-core {facts['platform']}, {time.time() - start:.0f} s")
    for column in range(1, len(COLUMNS)):
        ahead = [scores[column] - scores[0] for scores in found.values()]
        print(
            f"{COLUMNS[column]} less plain: mean {np.mean(ahead):+.3f}, worst {min(ahead):+.3f}, "
            f"ahead by more than .02 in {sum(a > 0.02 for a in ahead)} of {len(ahead)}, behind in "
            f"{sum(a < -0.02 for a in ahead)}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
