"""The table of normalised gaps that the project holds itself to: `python benchmarks/acceptance.py [--seeds 20]`.

Rewards: `random_linear_mdp(key(0), n_states=60, n_actions=4, dim=6, horizon=5)`, 20,000 pairs, uniform behaviour.
Transitions: `chain_mdp()`, 20,000 pairs, the true θ given to both oracles. Exits with 1 if a bar is missed.
"""

import argparse
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from robust_rlhf_jax import attacks, sample_preferences
from robust_rlhf_jax.algorithms import standard, uniform_coverage
from robust_rlhf_jax.lab.worlds import chain_mdp, random_linear_mdp
from robust_rlhf_jax.mdp import normalised_gap
from robust_rlhf_jax.oracles import LSVI, RLSVI
from robust_rlhf_jax.outputs import environment

PAIRS = 20_000
CASES = (
    ("none", 0.0),
    ("push_features", 0.05),
    ("push_features", 0.1),
    ("push_features", 0.2),
    ("push_features", 0.3),
    ("flip_confident", 0.05),
    ("flip_confident", 0.1),
    ("flip_confident", 0.2),
    ("corrupt_transitions", 0.1),
)


def reward_gaps(algorithm, attack, epsilon, seeds):
    """Normalised gaps [seeds] of an algorithm on the random MDP."""
    mdp = random_linear_mdp(jax.random.key(0), n_states=60, n_actions=4, dim=6, horizon=5)
    gaps = []
    for seed in range(seeds):
        k_data, k_attack, k_solve = jax.random.split(jax.random.key(seed), 3)
        data = sample_preferences(k_data, mdp, PAIRS)
        if attack != "none":
            data = attacks.ATTACKS[attack](k_attack, data, epsilon, mdp)
        gaps.append(float(normalised_gap(mdp, algorithm(k_solve, data, epsilon).policy)))
    return np.asarray(gaps)


def transition_gaps(oracle, epsilon, seeds):
    """Normalised gaps [seeds] of an oracle on the chain with corrupted transitions and the true θ."""
    mdp = chain_mdp()
    plan = jax.jit(lambda d, e, k: oracle.solve(oracle.prepare(d, e, key=k), mdp.theta).policy)
    gaps = []
    for seed in range(seeds):
        k_data, k_attack, k_solve = jax.random.split(jax.random.key(seed), 3)
        data = sample_preferences(k_data, mdp, PAIRS)
        data = attacks.corrupt_transitions(k_attack, data, epsilon, mdp)
        gaps.append(float(normalised_gap(mdp, plan(data, jnp.float32(epsilon), k_solve))))
    return np.asarray(gaps)


def line(name, gaps):
    return f"| {name} | {np.median(gaps):.4f} | {gaps.min():.4f} | {gaps.max():.4f} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--out", type=Path, help="also write the table to this file")
    arguments = parser.parse_args()
    rows, gaps = ["| case | median gap | lowest | highest |", "|---|---|---|---|"], {}
    for attack, epsilon in CASES:
        for algorithm in (standard, uniform_coverage):
            found = reward_gaps(algorithm, attack, epsilon, arguments.seeds)
            gaps[algorithm.__name__, attack, epsilon] = found
            rows.append(line(f"random · {attack} · ε = {epsilon:g} · `{algorithm.__name__}`", found))
            print(rows[-1], flush=True)
    for epsilon in (0.05, 0.1, 0.2):
        for oracle in (LSVI(), RLSVI()):
            found = transition_gaps(oracle, epsilon, arguments.seeds)
            gaps[type(oracle).__name__, "chain", epsilon] = found
            rows.append(
                line(f"chain · corrupt_transitions · ε = {epsilon:g} · `{type(oracle).__name__}`", found)
            )
            print(rows[-1], flush=True)
    bars = check(gaps)
    facts = environment()
    device = f"{facts['cores']}-core {facts['platform']}"
    footer = f"{arguments.seeds} seeds, {facts['date']}, {device}, jax {facts['versions']['jax']}"
    report = "\n".join([*rows, "", footer, "", *bars])
    print("\n".join(["", footer, *bars]))
    if arguments.out:
        arguments.out.write_text(report + "\n", encoding="utf-8")
    return int(any("MISSED" in bar for bar in bars))


def check(gaps):
    """One line per bar."""
    robust = {k[1:]: v for k, v in gaps.items() if k[0] == "uniform_coverage"}
    plain = {k[1:]: v for k, v in gaps.items() if k[0] == "standard"}
    bars = []

    def bar(text, value, held):
        bars.append(f"- {'held  ' if held else 'MISSED'} {text}: {value:.4f}")

    for epsilon in (0.1, 0.2):
        case = ("push_features", epsilon)
        median, highest = np.median(robust[case]), robust[case].max()
        bar(f"push_features, ε = {epsilon:g}, uniform_coverage, median ≤ .03", median, median <= 0.03)
        bar(f"push_features, ε = {epsilon:g}, uniform_coverage, maximum ≤ .10", highest, highest <= 0.10)
        rival = np.median(plain[case])
        bar(f"push_features, ε = {epsilon:g}, standard, median ≥ .2", rival, rival >= 0.2)
    flipped = np.median(robust["flip_confident", 0.1])
    bar("flip_confident, ε = .1, uniform_coverage, median ≤ .03", flipped, flipped <= 0.03)
    price = np.median(robust["none", 0.0]) - np.median(plain["none", 0.0])
    bar("ε = 0, uniform_coverage within .01 of the clean reference", price, abs(price) <= 0.01)
    lsvi, rlsvi = np.median(gaps["LSVI", "chain", 0.1]), np.median(gaps["RLSVI", "chain", 0.1])
    bar("chain, corrupt_transitions, ε = .1, R-LSVI / LSVI ≤ 1/3", rlsvi / lsvi, rlsvi <= lsvi / 3)
    return bars


if __name__ == "__main__":
    sys.exit(main())
