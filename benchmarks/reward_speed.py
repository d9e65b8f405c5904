"""How long `fit_reward` takes: `python benchmarks/reward_speed.py [--quick]`.

Compiles and runs the fit of N normal pairs of k features, clean and with a tenth planted far out against θ, with ε = .1
and .2; the second ε does not recompile. Prints a row per size in seconds of wall time.
Bars: 10,000 × 20 compiles in 5 s and runs in .5 s; 20,000 × 512 and 2,000 × 4,096 run in 4 s, 50,000 × 1,024
in 40 s, 20,000 × 4,096 in 60 s. Exits with 1 where one is missed.
"""

import argparse
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

from robust_rlhf_jax.outputs import environment
from robust_rlhf_jax.rewards import fit_differences

# (pairs, features): seconds to compile and to run, None for no bar.
BARS = {
    (10_000, 20): (5.0, 0.5),
    (20_000, 512): (None, 4.0),
    (50_000, 1_024): (None, 40.0),
    (20_000, 4_096): (None, 60.0),
    (2_000, 4_096): (None, 4.0),
    (2_000, 512): (None, None),
}


def pairs(n, k, planted):
    """x [n, k], labels [n] in float32; the first tenth planted 2√k out against θ if `planted`."""
    rng = np.random.default_rng(0)
    x, theta = rng.normal(size=(n, k)), rng.normal(size=k) * 1.5 / np.sqrt(k)
    labels = np.where(rng.random(n) < 1 / (1 + np.exp(-x @ theta)), 1.0, -1.0)
    if planted:
        x[: n // 10] = -2 * np.sqrt(k) * theta / np.linalg.norm(theta)
        labels[: n // 10] = 1.0
    return jnp.asarray(x, jnp.float32), jnp.asarray(labels, jnp.float32)


def seconds(function, *arguments):
    start = time.perf_counter()
    found = jax.block_until_ready(function(*arguments))
    return time.perf_counter() - start, found


def measured(n, k):
    """(seconds to compile, slowest run in seconds)."""
    data = {planted: pairs(n, k, planted) for planted in (False, True)}
    levels = [jnp.float32(level) for level in (0.1, 0.2)]
    start = time.perf_counter()
    fit = jax.jit(fit_differences).lower(*data[False], levels[0]).compile()
    compiling = time.perf_counter() - start
    runs = [seconds(fit, *given, level)[0] for given in data.values() for level in levels]
    return compiling, max(runs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the first size alone")
    given = parser.parse_args()
    jax.config.update("jax_enable_compilation_cache", False)
    missed = []
    print("| pairs | features | compiles in s | slowest of four runs in s |\n|---|---|---|---|")
    for (n, k), bars in list(BARS.items())[: 1 if given.quick else None]:
        found = measured(n, k)
        print(f"| {n:,} | {k:,} | {found[0]:.1f} | {found[1]:.2f} |", flush=True)
        missed += [f"{n:,} × {k:,}" for value, bar in zip(found, bars, strict=True) if bar and value > bar]
    print(f"\n{environment()}" + "".join(f"\nMISSED: {what}" for what in missed))
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
