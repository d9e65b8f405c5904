"""What a GPU gains, and whether it computes the same: `python benchmarks/on_gpu.py [--quick | --gpu-alone]`.

Each row is computed in a process on the CPU and in one on the GPU, compiled before it is timed; the last column is the
largest difference of the two results, in units of the largest entry. Without a GPU the column of the CPU is printed,
and with `--gpu-alone` that of the GPU, as each row is finished.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from reward_speed import pairs
from sweep_cells import as_in_a_sweep, batches

from robust_rlhf_jax.moments import robust_mean
from robust_rlhf_jax.outputs import environment
from robust_rlhf_jax.rewards import Streaming, fit_differences, fit_source
from robust_rlhf_jax.sources import ArraySource

RUNS = 3


def reward_fit(n, k):
    """θ of `fit_reward`, a tenth of the pairs planted."""
    x, labels = pairs(n, k, planted=True)
    fit = jax.jit(fit_differences)
    return lambda: fit(x, labels, jnp.float32(0.1)).theta


def by_passes(n, k, memory):
    """θ of `fit_source`, a twentieth of the float16 pairs planted, which `memory` cannot hold."""
    rng = np.random.default_rng(0)
    theta = rng.standard_normal(k, dtype=np.float32) * np.float32(1.5 / np.sqrt(k))
    z = rng.standard_normal((n, k), dtype=np.float32)
    margins = z @ theta
    z *= np.where(rng.random(n) < 1 / (1 + np.exp(-margins)), 1, -1).astype(np.float32)[:, None]
    z[: n // 20] = -2 * np.sqrt(k) * theta / np.linalg.norm(theta)
    source = ArraySource(z.astype(np.float16))
    return lambda: fit_source(source, 0.1, streaming=Streaming(memory=memory)).theta


def mean(n, d):
    """`robust_mean` of n rows, a tenth of them replaced by one point."""
    x = jax.random.normal(jax.random.key(0), (n, d))
    x = x.at[: n // 10].set(2.0)
    robust = jax.jit(robust_mean)
    return lambda: robust(x, 0.1)


def cells(n):
    """The gap of `uniform_coverage` in n cells of a sweep, N = 5,000: one by one on a CPU, vmapped on a GPU."""
    batch = list(batches(8 * n))[1]
    return lambda: as_in_a_sweep(*batch)[0]


ROWS = {
    "reward of 10,000 pairs × 20 features": lambda: reward_fit(10_000, 20),
    "reward of 20,000 pairs × 512 features": lambda: reward_fit(20_000, 512),
    "robust mean of 40,000 rows × 100": lambda: mean(40_000, 100),
    "robust mean of 400,000 rows × 200": lambda: mean(400_000, 200),
    "32 cells of a sweep": lambda: cells(32),
    "256 cells of a sweep": lambda: cells(256),
    "reward of 50,000 pairs × 1,024 features": lambda: reward_fit(50_000, 1_024),
    "reward of 2,000 pairs × 4,096 features": lambda: reward_fit(2_000, 4_096),
    "reward of 20,000 pairs × 4,096 features": lambda: reward_fit(20_000, 4_096),
    "reward by passes of 400,000 pairs × 1,024 features": lambda: by_passes(400_000, 1_024, 400_000_000),
}
QUICK = ("reward of 10,000 pairs × 20 features", "robust mean of 40,000 rows × 100")


def timed(run):
    """(seconds to compile and run once, fastest of the runs after it, the result)."""
    start = time.perf_counter()
    jax.block_until_ready(run())
    first, times = time.perf_counter() - start, []
    for _ in range(RUNS):
        start = time.perf_counter()
        found = jax.block_until_ready(run())
        times.append(time.perf_counter() - start)
    return first, min(times), np.asarray(found)


def child(rows, out):
    """Saves each row's times and result as they come, and the environment at the end."""
    for i, row in enumerate(rows):
        first, fastest, found = timed(ROWS[row]())
        print(
            f"{jax.default_backend()}: {row}: first call {first:.1f} s, then {fastest:.4f} s",
            file=sys.stderr,
            flush=True,
        )
        np.savez(Path(out) / f"{i}.npz", first=first, fastest=fastest, found=found)
    (Path(out) / "environment.json").write_text(json.dumps(environment()))


def has_gpu():
    """Asked in a process of its own, which gives the GPU back."""
    asked = [sys.executable, "-c", "import jax; jax.devices('gpu')"]
    return not subprocess.run(asked, stderr=subprocess.DEVNULL, check=False).returncode


def on(platform, rows, out):
    """([first, fastest, result] of each row, environment) of a process on a platform."""
    folder = Path(out) / platform
    folder.mkdir()
    command = [sys.executable, __file__, "--child", str(folder), "--rows", *rows]
    told = os.environ | {"JAX_PLATFORMS": platform, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    subprocess.run(command, env=told, check=True)
    return [np.load(folder / f"{i}.npz") for i in range(len(rows))], (folder / "environment.json").read_text()


def columns(cpu, gpu):
    if gpu is None:
        return [f"{cpu['fastest']:.4f}", *["–"] * 4]
    apart = np.max(np.abs(cpu["found"] - gpu["found"])) / np.max(np.abs(cpu["found"]))
    slow, fast = cpu["fastest"], gpu["fastest"]
    return f"{slow:.4f}", f"{fast:.4f}", f"{slow / fast:.1f}", f"{gpu['first']:.0f}", f"{apart:.0e}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the two smallest rows")
    parser.add_argument("--gpu-alone", action="store_true", help="do not time the CPU")
    parser.add_argument("--rows", nargs="+", default=list(ROWS), choices=list(ROWS), help=argparse.SUPPRESS)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    jax.config.update("jax_enable_compilation_cache", False)
    if given.child:
        child(given.rows, given.child)
        return 0
    rows = list(QUICK) if given.quick else given.rows
    with tempfile.TemporaryDirectory() as out:
        gpu = on("cuda", rows, out) if has_gpu() else None
        if given.gpu_alone:
            return 0
        cpu = on("cpu", rows, out)
        print(
            "| what | CPU, s | GPU, s | times faster | first GPU call, s | difference |\n|---|---|---|---|---|---|"
        )
        for row, one, other in zip(rows, cpu[0], gpu[0] if gpu else [None] * len(rows), strict=True):
            print(f"| {row} | {' | '.join(columns(one, other))} |")
    print(f"\nCPU: {cpu[1]}" + (f"\nGPU: {gpu[1]}" if gpu else "\nNo GPU was found."))
    return 0


if __name__ == "__main__":
    sys.exit(main())
