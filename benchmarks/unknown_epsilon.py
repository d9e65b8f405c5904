"""What not knowing ε costs: `python benchmarks/unknown_epsilon.py [--seeds 5] [--pairs 4000 20000]`.

`random_linear_mdp(key(0), n_states=36, n_actions=4, dim=6, horizon=4)`, uniform behaviour. First the interval of
`estimate_epsilon`, then the normalised gaps of Algorithm 1 (exact planner, so that only the reward is at stake) with
the ε of `unknown_epsilon`, the true ε and a fixed one.
"""

import argparse

import jax
import numpy as np

from robust_rlhf_jax import (
    ExactOracle,
    attacks,
    estimate_epsilon,
    normalised_gap,
    random_linear_mdp,
    sample_preferences,
    uniform_coverage,
    unknown_epsilon,
)
from robust_rlhf_jax.outputs import environment

FIXED = 0.2
LEVELS = (0.05, 0.1, 0.2)
CASES = [("none", 0.0)] + [(a, e) for a in ("push_features", "flip_confident", "flip_random") for e in LEVELS]


def datasets(mdp, attack, epsilon, pairs, seeds):
    for seed in range(seeds):
        k_data, k_attack, k_solve = jax.random.split(jax.random.key(seed), 3)
        data = sample_preferences(k_data, mdp, pairs)
        yield k_solve, data if attack == "none" else attacks.ATTACKS[attack](k_attack, data, epsilon, mdp)


def interval_row(mdp, attack, epsilon, pairs, seeds):
    found = [
        jax.tree.map(float, {**vars(estimate_epsilon(data, key=key)), "theta": 0.0})
        for key, data in datasets(mdp, attack, epsilon, pairs, seeds)
    ]
    mean = {name: np.mean([f[name] for f in found]) for name in ("estimate", "lower", "upper")}
    covered = np.mean([f["lower"] <= epsilon <= f["upper"] for f in found])
    error = np.mean([abs(f["estimate"] - epsilon) for f in found])
    return (
        f"| {pairs} | `{attack}` | {epsilon} | {mean['estimate']:.3f} | {error:.3f} | "
        f"[{mean['lower']:.3f}, {mean['upper']:.3f}] | {covered:.0%} |"
    )


def gap_row(mdp, attack, epsilon, pairs, seeds):
    oracle, gaps, chosen = ExactOracle(mdp), [], []
    for key, data in datasets(mdp, attack, epsilon, pairs, seeds):
        ours = unknown_epsilon(key, data, oracle=oracle)
        known = [uniform_coverage(key, data, e, oracle=oracle) for e in (epsilon, FIXED)]
        gaps.append([float(normalised_gap(mdp, s.policy)) for s in (ours, *known)])
        chosen.append(float(ours.diagnostics["epsilon"]))
    ours, true, fixed = np.mean(gaps, axis=0)
    picks = ", ".join(f"{c:g}" for c in sorted(np.round(chosen, 3)))
    return f"| {pairs} | `{attack}` | {epsilon} | {ours:.4f} | {true:.4f} | {fixed:.4f} | {picks} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--pairs", type=int, nargs="+", default=[4_000, 20_000])
    arguments = parser.parse_args()
    mdp = random_linear_mdp(jax.random.key(0), n_states=36, n_actions=4, dim=6, horizon=4)
    print("| pairs | attack | ε | mean estimate | mean error | mean interval (95 %) | holds ε |")
    print("|---|---|---|---|---|---|---|")
    for pairs in arguments.pairs:
        for attack, epsilon in CASES:
            print(interval_row(mdp, attack, epsilon, pairs, arguments.seeds), flush=True)
    print(f"\n| pairs | attack | ε | gap, ε chosen | gap, ε known | gap, ε = {FIXED} | chosen |")
    print("|---|---|---|---|---|---|---|")
    for pairs in arguments.pairs:
        for attack, epsilon in CASES:
            print(gap_row(mdp, attack, epsilon, pairs, arguments.seeds), flush=True)
    print(f"\n{environment()}")


if __name__ == "__main__":
    main()
