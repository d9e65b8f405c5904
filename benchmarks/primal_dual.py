"""The primal–dual oracle and Algorithm 4: `python benchmarks/primal_dual.py [--seeds 10] [--figure FILE]`.

Prints what Algorithm 7 reaches on clean data beside the published update, what robust means save it under
`corrupt_transitions` with the true θ, and Algorithm 4 beside Algorithm 3 where the data have holes; draws the duality
gap against iterations. Exits with 1 if a bar is missed.
"""

import argparse
import dataclasses
import sys
import time
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from robust_rlhf_jax import attacks, sample_preferences
from robust_rlhf_jax.algorithms import (
    ConditionNumberConfig,
    DescentConfig,
    FirstOrderConfig,
    condition_number,
    first_order,
)
from robust_rlhf_jax.lab.worlds import chain_mdp, partial_coverage_mdp, random_linear_mdp
from robust_rlhf_jax.mdp import expected_features, normalised_gap, optimal_policy
from robust_rlhf_jax.oracles import PrimalDual
from robust_rlhf_jax.outputs import environment

PAIRS, EPSILON = 20_000, 0.1
COLD_SEEDS = 3  # at 1,000 iterations a call, a hundred calls a run
OPTIMISTIC = PrimalDual()
PUBLISHED = PrimalDual(optimistic=False, averaging=0.0)
# The chain's optimum takes ten swims in a row that the data hardly hold: its game converges more slowly.
WORLDS = {
    "random": (
        lambda: random_linear_mdp(jax.random.key(0), n_states=60, n_actions=4, dim=6, horizon=5),
        1000,
    ),
    "chain": (chain_mdp, 5000),
}
ALGORITHMS = {
    "`condition_number`, zero_order": (condition_number, ConditionNumberConfig()),
    "`condition_number`, autodiff": (
        condition_number,
        ConditionNumberConfig(descent=DescentConfig(gradient="autodiff")),
    ),
    "`first_order`, warm starts": (first_order, FirstOrderConfig()),
    "`first_order`, cold starts": (
        first_order,
        FirstOrderConfig(descent=DescentConfig(gradient="oracle")),
    ),
}


@eqx.filter_jit
def play(oracle, data, epsilon, theta):
    return oracle.solve(oracle.prepare(data, epsilon, key=jax.random.key(0)), theta)


def clean_table(seeds):
    """(lines, (gap, subgradient error) [seeds, 2] by update) on clean data, ε = 0, T = 1000."""
    mdp = WORLDS["random"][0]()
    features = expected_features(mdp, optimal_policy(mdp)[0])
    found = {"optimistic (default)": [], "published": []}
    for seed in range(seeds):
        data = sample_preferences(jax.random.key(seed), mdp, PAIRS)
        for name, oracle in zip(found, (OPTIMISTIC, PUBLISHED), strict=True):
            answer = play(oracle, data, jnp.float32(0.0), mdp.theta)
            error = jnp.linalg.norm(answer.subgradient - features) / jnp.linalg.norm(features)
            found[name].append((float(normalised_gap(mdp, answer.policy)), float(error)))
    found = {name: np.asarray(rows) for name, rows in found.items()}
    lines = ["| update | gap: median | worst | ‖v̂ − E_π★[φ]‖/‖·‖: median | worst |", "|---|---|---|---|---|"]
    for name, rows in found.items():
        (gap, error), (worst, largest) = np.median(rows, axis=0), np.max(rows, axis=0)
        lines.append(f"| {name} | {gap:.5f} | {worst:.5f} | {error:.3f} | {largest:.3f} |")
    return lines, found


def corrupted_table(seeds):
    """(lines, gaps [seeds] by (world, robust)) under `corrupt_transitions`, true θ."""
    lines = [
        "| world | T | plain means: median | worst | robust means: median | worst |",
        "|---|---|---|---|---|---|",
    ]
    gaps = {}
    for world, (build, steps) in WORLDS.items():
        mdp, oracle = build(), dataclasses.replace(OPTIMISTIC, steps=steps)
        for seed in range(seeds):
            k_data, k_attack = jax.random.split(jax.random.key(seed))
            data = sample_preferences(k_data, mdp, PAIRS)
            data = attacks.corrupt_transitions(k_attack, data, EPSILON, mdp)
            for robust in (False, True):
                answer = play(oracle, data, jnp.float32(EPSILON * robust), mdp.theta)
                gaps.setdefault((world, robust), []).append(float(normalised_gap(mdp, answer.policy)))
        cells = [f"{np.median(gaps[world, r]):.4f} | {max(gaps[world, r]):.4f}" for r in (False, True)]
        lines.append(f"| {world} | {steps:,} | {cells[0]} | {cells[1]} |")
    return lines, gaps


def holes_table(seeds):
    """(lines, medians and calls by (algorithm, ε)) on `partial_coverage_mdp` with `praise_rare`."""
    mdp, behaviour = partial_coverage_mdp(jax.random.key(0))
    lines = ["| algorithm | oracle calls | time s | ε = 0: median gap | ε = .01 | ε = .02 | worst |"]
    lines.append("|---|---|---|---|---|---|---|")
    found = {}
    for name, (algorithm, config) in ALGORITHMS.items():
        spent, repeats = [], min(seeds, COLD_SEEDS) if "cold" in name else seeds
        for epsilon in (0.0, 0.01, 0.02):
            gaps = []
            for seed in range(-1, repeats):  # the first run compiles
                k_data, k_attack, k_solve = jax.random.split(jax.random.key(max(seed, 0)), 3)
                data = sample_preferences(k_data, mdp, PAIRS, behaviour=behaviour)
                data = attacks.praise_rare(k_attack, data, epsilon, mdp)
                start = time.perf_counter()
                answer = jax.block_until_ready(algorithm(k_solve, data, epsilon, config=config))
                spent.append(time.perf_counter() - start)
                gaps.append(float(normalised_gap(mdp, answer.policy)))
            calls = int(answer.diagnostics["oracle_calls"])
            found[name, epsilon] = np.median(gaps[1:]), calls, max(gaps[1:])
        cells = " | ".join(f"{found[name, e][0]:.4f}" for e in (0.0, 0.01, 0.02))
        worst = max(found[name, e][2] for e in (0.0, 0.01, 0.02))
        lines.append(f"| {name} | {calls:,} | {np.median(spent):.2f} | {cells} | {worst:.4f} |")
    return lines, found


def bars(clean, corrupted, holes):
    """(what is asked, whether it holds, the figure)."""
    gap, error = np.max(clean["optimistic (default)"], axis=0)
    yield "clean data, T = 1000: worst gap ≤ .005", gap <= 0.005, gap
    yield "clean data, T = 1000: worst subgradient error ≤ .15", error <= 0.15, error
    for world in WORLDS:
        plain, robust = (float(np.median(corrupted[world, r])) for r in (False, True))
        yield f"{world}, corrupted: median gap ≤ .05", robust <= 0.05, robust
        share = robust <= plain / 3 if plain >= 0.01 else robust <= plain
        yield f"{world}, corrupted: at most a third of plain means", share, robust / plain
    ours, theirs = "`first_order`, warm starts", "`condition_number`, zero_order"
    for epsilon in (0.01, 0.02):
        median, calls, _ = holes[ours, epsilon]
        yield f"{ours}, ε = {epsilon}: median gap ≤ .12", median <= 0.12, median
        share = calls / holes[theirs, epsilon][1]
        yield f"{ours}, ε = {epsilon}: at most 1/20 of the zero-order calls", share <= 0.05, share


def draw(path, rounds=100):
    """Duality gap and flow residual of the averages against iterations, published beside optimistic."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    mdp = WORLDS["random"][0]()
    data = sample_preferences(jax.random.key(0), mdp, PAIRS)
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    for name, oracle, colour in (
        ("published", PUBLISHED, "#c1432e"),
        ("optimistic, uniform average", dataclasses.replace(OPTIMISTIC, averaging=0.0), "#8fb8c8"),
        ("optimistic, late average (default)", OPTIMISTIC, "#1f6f8b"),
    ):
        oracle = dataclasses.replace(oracle, steps=20 * rounds, refresh=20)
        details = play(oracle, data, jnp.float32(0.0), mdp.theta).details
        steps = 20 * (1 + np.arange(rounds))
        axes[0].plot(steps, details["gaps"], color=colour, label=name)
        axes[1].plot(steps, details["residuals"], color=colour, label=name)
    for ax, label in zip(
        axes, ("duality gap of the averages", "Bellman-flow residual ‖mean ∇w‖"), strict=True
    ):
        ax.set(xscale="log", yscale="log", xlabel="iterations", ylabel=label)
        ax.grid(alpha=0.3)
    axes[0].legend(frameon=False)
    figure.suptitle("Algorithm 7 on random_linear_mdp(60, 4, 6, 5), 20,000 clean pairs, ε = 0")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--figure", type=Path, help="draw the duality gap here and compute nothing else")
    arguments = parser.parse_args()
    if arguments.figure:
        draw(arguments.figure)
        return 0
    found = []
    for table in (clean_table, corrupted_table, holes_table):
        lines, figures = table(arguments.seeds)
        print("\n".join([*lines, ""]), flush=True)
        found.append(figures)
    facts = environment()
    print(
        f"{arguments.seeds} seeds ({COLD_SEEDS} for cold starts), {PAIRS:,} pairs, {facts['date']}, "
        f"{facts['cores']}-core {facts['platform']}, jax {facts['versions']['jax']}"
    )
    checks = list(bars(*found))
    for what, holds, figure in checks:
        print(f"- {'held  ' if holds else 'MISSED'} {what}: {figure:.4f}")
    return 0 if all(holds for _, holds, _ in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
