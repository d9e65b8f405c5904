"""What not knowing ε costs: `python benchmarks/unknown_epsilon.py [--seeds 5] [--pairs 4000] [--shared FOLDER]`.

On real choices (`real_sets.py`): what `fit_reward` estimates without ε, whether its interval holds the
truth, and how accurate θ̂ is on the clean pairs, with ε or without, beside maximum likelihood. Then worlds:
`random_linear_mdp(key(0), n_states=36, n_actions=4, dim=6, horizon=4)`, uniform behaviour, the normalised gap of
Algorithm 1 (exact planner, so that only the reward is at stake) with the ε of `unknown_epsilon`, the true one and .2.
"""

import argparse
from pathlib import Path

import jax
import numpy as np
from real_sets import KINDS, RealSet, corrupt, fitted, real_sets
from studies import LEVELS, SHARED

from robust_rlhf_jax import attacks, fit_reward, sample_preferences
from robust_rlhf_jax.algorithms import uniform_coverage, unknown_epsilon
from robust_rlhf_jax.lab.worlds import random_linear_mdp
from robust_rlhf_jax.mdp import normalised_gap
from robust_rlhf_jax.oracles import ExactOracle
from robust_rlhf_jax.outputs import environment
from robust_rlhf_jax.preferences import preferences_from_options

FIXED = 0.2
REAL_CASES = [("none", 0.0)] + [(kind, e) for kind in KINDS for e in LEVELS]
CASES = [("none", 0.0)] + [(a, e) for a in ("push_features", "flip_confident", "flip_random") for e in LEVELS]


def accuracy(clean: RealSet, theta) -> float:
    return float(np.mean(clean.labels * (clean.x @ np.asarray(theta)) > 0))


def one_fit(clean: RealSet, kind: str, epsilon: float, seed: int):
    """(estimate, lower, upper, whether the interval holds ε, accuracy of plain, with ε, without ε)."""
    rng = np.random.default_rng(seed)
    data = clean if kind == "none" else corrupt(rng, clean, kind, epsilon)[0]
    pairs = preferences_from_options(np.zeros_like(data.x), data.x, data.labels)
    told = fit_reward(pairs, epsilon, groups=data.groups)
    ours = fit_reward(pairs, groups=data.groups)
    lower, upper = (float(v) for v in ours.interval)
    estimate = max(float(ours.epsilon), lower)
    held = lower - 1e-3 <= epsilon <= upper + 1e-3
    thetas = (fitted(data.x, data.labels), told.theta, ours.theta)
    return estimate, lower, upper, held, *(accuracy(clean, theta) for theta in thetas)


def real_row(name, clean, kind, epsilon, seeds):
    # Clean data and the flips of the surest labels know no chance: other seeds draw other people.
    found = [one_fit(people_drawn(clean, seed), kind, epsilon, seed) for seed in seeds]
    estimate, lower, upper, held, plain, told, ours = np.mean(found, axis=0)
    return (
        f"| {name} | `{kind}` | {epsilon} | {estimate:.3f} | [{lower:.3f}, {upper:.3f}] | {held:.0%} | "
        f"{plain:.3f} | {told:.3f} | {ours:.3f} |"
    ), np.sum([f[3] for f in found])


def people_drawn(clean: RealSet, seed: int) -> RealSet:
    """Nine tenths of the people, all of their pairs, cut to a length that all seeds share."""
    rng = np.random.default_rng(1000 + seed)
    people = rng.permutation(np.unique(clean.groups))
    rank = np.empty(people.max() + 1, int)
    rank[people] = np.arange(len(people))
    rows = np.argsort(rank[clean.groups], kind="stable")[: int(0.9 * len(clean.labels))]
    return RealSet(clean.x[rows], clean.labels[rows], np.unique(clean.groups[rows], return_inverse=True)[1])


def gap_row(mdp, attack, epsilon, pairs, seeds):
    oracle, gaps, chosen = ExactOracle(mdp), [], []
    for seed in seeds:
        k_data, k_attack, key = jax.random.split(jax.random.key(seed), 3)
        data = sample_preferences(k_data, mdp, pairs)
        if attack != "none":
            data = attacks.ATTACKS[attack](k_attack, data, epsilon, mdp)
        ours = unknown_epsilon(key, data, oracle=oracle)
        known = [uniform_coverage(key, data, e, oracle=oracle) for e in (epsilon, FIXED)]
        gaps.append([float(normalised_gap(mdp, s.policy)) for s in (ours, *known)])
        chosen.append(float(ours.diagnostics["epsilon"]))
    ours, true, fixed = np.mean(gaps, axis=0)
    picks = ", ".join(f"{c:.2f}" for c in sorted(chosen))
    return f"| {pairs} | `{attack}` | {epsilon} | {ours:.4f} | {true:.4f} | {fixed:.4f} | {picks} |"


def print_real(seeds, folder):
    print("| data | corruption | ε | mean estimate | mean interval | holds ε | plain | with ε | without ε |")
    print("|---|---|---|---|---|---|---|---|---|")
    held = count = 0
    for name, clean in real_sets(folder).items():
        for kind, epsilon in REAL_CASES:
            row, holds = real_row(name, clean, kind, epsilon, seeds)
            held, count = held + holds, count + len(seeds)
            print(row, flush=True)
    print(f"\nThe interval holds ε in {held} of {count} fits.\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--pairs", type=int, nargs="+", default=[4_000])
    parser.add_argument("--shared", type=Path, default=SHARED)
    arguments = parser.parse_args()
    seeds = range(arguments.seeds)
    print_real(seeds, arguments.shared)
    mdp = random_linear_mdp(jax.random.key(0), n_states=36, n_actions=4, dim=6, horizon=4)
    print(
        f"| pairs | attack | ε | gap, ε not known | gap, ε known | gap, ε = {FIXED} | ε given to the algorithm |"
    )
    print("|---|---|---|---|---|---|---|")
    for pairs in arguments.pairs:
        for attack, epsilon in CASES:
            print(gap_row(mdp, attack, epsilon, pairs, seeds), flush=True)
    print(f"\n{environment()}")


if __name__ == "__main__":
    main()
