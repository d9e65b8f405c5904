"""Does Algorithm 4 depend on the last bit? `python benchmarks/last_bit.py [--seeds 3] [--bits 4] [--double]`.

Multiplies the features of clean data on small gridworlds by 1 + k·2⁻²³ (2⁻⁵² with `--double`), k = 0, 1, …, and prints
how far the normalised gap moves, which share of the runs said CONVERGED, and the seconds of a compiled call.
"""

import argparse
import dataclasses
import time

import jax
import jax.numpy as jnp
import numpy as np

from robust_rlhf_jax import Status, sample_preferences
from robust_rlhf_jax.algorithms import first_order
from robust_rlhf_jax.lab.worlds import gridworld
from robust_rlhf_jax.mdp import normalised_gap

# name: (cells a side, horizon, pairs)
WORLDS = {"4×4, H = 2": (4, 2, 300), "4×4, H = 4": (4, 4, 1_000), "6×6, H = 4": (6, 4, 4_000)}


def scaled(data, factor):
    """The same data with all features times `factor`."""
    return dataclasses.replace(
        data, features=data.features * factor, state_features=data.state_features * factor
    )


def runs(world, seed, bits, dtype):
    """(gap, converged, seconds) [bits, 3]; the first run of a world compiles."""
    size, horizon, n_pairs = WORLDS[world]
    mdp = gridworld(jax.random.key(seed), size=size, cells=2, horizon=horizon)
    mdp = jax.tree.map(lambda x: x.astype(dtype), mdp)
    data = sample_preferences(jax.random.key(100 + seed), mdp, n_pairs)
    rows = []
    for k in range(bits):
        lane = scaled(data, 1 + k * jnp.finfo(dtype).eps)
        start = time.perf_counter()
        found = jax.block_until_ready(first_order(jax.random.key(seed), lane, 0.0))
        seconds = time.perf_counter() - start
        gap = float(normalised_gap(mdp, found.policy))
        rows.append((gap, float(found.status == Status.CONVERGED), seconds))
    return np.asarray(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--bits", type=int, default=4)
    parser.add_argument("--double", action="store_true", help="float64")
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", arguments.double)
    dtype = jnp.float64 if arguments.double else jnp.float32
    print(f"{jnp.dtype(dtype).name}, {arguments.seeds} seeds, {arguments.bits} last bits\n")
    print("| world | median gap | spread of gaps: median | worst | said CONVERGED | s per call |")
    print("|---|---|---|---|---|---|")
    for world in WORLDS:
        found = np.stack([runs(world, seed, arguments.bits, dtype) for seed in range(arguments.seeds)])
        gaps, converged, seconds = np.moveaxis(found, -1, 0)
        spread = np.ptp(gaps, axis=1)
        print(
            f"| {world} | {np.median(gaps):.4f} | {np.median(spread):.5f} | {np.max(spread):.5f} "
            f"| {np.mean(converged):.0%} | {np.median(seconds):.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
