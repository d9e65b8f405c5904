"""Ways of running the cells of a sweep, ε × seed of `uniform_coverage`: what `test_sweep.py` times.

`python benchmarks/sweep_cells.py [--cells 192] [--way NAME …]` prints wall and processor time per cell of each way in
one process, of two processes at once, and of two devices that share the processor. A way is one of `WAYS`.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import jax
import numpy as np

from robust_rlhf_jax.algorithms import uniform_coverage
from robust_rlhf_jax.lab.processor_devices import cores
from robust_rlhf_jax.lab.sweeps.families import World, stack_worlds
from robust_rlhf_jax.lab.sweeps.over_devices import gather, lane_counts, place
from robust_rlhf_jax.lab.sweeps.programs import corrupt_batch, sample_batch, solve_batch
from robust_rlhf_jax.lab.worlds import random_linear_mdp
from robust_rlhf_jax.mdp import normalised_gap, policy_value, uniform_policy

PAIRS, ATTACK = 5_000, "flip_confident"
EPSILONS = np.linspace(0.0, 0.35, 8, dtype=np.float32)
SIZE = "N = 5,000, H = 5, d = 6, S = 60, A = 4"


def batches(cells, pairs=PAIRS):
    """For each of 8 ε its (keys, attacked data, worlds, world of each lane, ε of each lane), a lane per seed."""
    seeds = cells // len(EPSILONS)
    mdp = random_linear_mdp(jax.random.key(0), n_states=60, n_actions=4, dim=6, horizon=5)
    worlds = stack_worlds([World(mdp, uniform_policy(mdp))])
    world, keys = np.zeros(seeds, np.int32), jax.random.split(jax.random.key(1), seeds)
    (keys, world), worlds = place((keys, world), split=True), place(worlds, split=False)
    counts = place(lane_counts(seeds, seeds), split=True)
    datasets = sample_batch(keys, worlds, world, 1.0, pairs, counts=counts)[0]
    index, shared = place(np.arange(seeds), split=True), place(datasets, split=False)
    for level in EPSILONS:
        epsilons = place(np.full(seeds, level), split=True)
        data = corrupt_batch(keys, shared, worlds, index, world, epsilons, ATTACK, counts=counts)
        yield jax.block_until_ready((keys, data, worlds, world, epsilons))


def cell(worlds, key, data, world, epsilon):
    """One lane of `sweeps.programs.solve_batch`."""
    mdp = gather(worlds.mdp, world)
    solution = uniform_coverage(key, data, epsilon)
    return normalised_gap(mdp, solution.policy), policy_value(mdp, solution.policy), solution.status


one_call = jax.jit(cell)
at_once = jax.jit(jax.vmap(cell, (None, 0, 0, 0, 0)))


def as_in_a_sweep(keys, data, worlds, world, epsilons):
    counts = place(lane_counts(len(keys), len(keys)), split=True)
    return solve_batch(keys, data, worlds, world, epsilons, "uniform_coverage", counts=counts)[:3]


def one_by_one(keys, data, worlds, world, epsilons):
    lanes = [gather((keys, data, world, epsilons), i) for i in range(len(keys))]
    return [jax.block_until_ready(one_call(worlds, *lane)) for lane in lanes]


def vmapped(width, keys, data, worlds, world, epsilons):
    """Batches of `width` cells; `take` sees to it that the last is full."""
    parts = [slice(i, i + width) for i in range(0, len(keys), width)]
    return [jax.block_until_ready(at_once(worlds, *gather((keys, data, world, epsilons), p))) for p in parts]


def by_threads(keys, data, worlds, world, epsilons):
    """Two threads, a program of half the cells each."""
    half = len(keys) // 2
    parts = [gather((keys, data, world, epsilons), p) for p in (slice(0, half), slice(half, 2 * half))]
    run = lambda p: jax.block_until_ready(as_in_a_sweep(p[0], p[1], worlds, *p[2:]))  # noqa: E731
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(run, parts))


WAYS = {
    "the sweep's program": as_in_a_sweep,
    "calls one by one": one_by_one,
    "vmap, 8 lanes": partial(vmapped, 8),
    "vmap, 24 lanes": partial(vmapped, 24),
    "two threads": by_threads,
}


def take(way, batch, most):
    """The first cells of a batch, at most `most`, in whole batches of vmap's lanes."""
    keys, data, worlds, world, epsilons = batch
    width = WAYS[way].args[0] if isinstance(WAYS[way], partial) else 1
    count = max(width, min(most, len(keys)) // width * width)
    keys, data, world, epsilons = gather((keys, data, world, epsilons), slice(0, count))
    return count, jax.block_until_ready((keys, data, worlds, world, epsilons))


def run_timed(way, batch, most):
    """(cells, wall seconds, processor seconds) of a way on a batch, compiled before."""
    count, part = take(way, batch, most)
    start, busy = time.perf_counter(), time.process_time()
    jax.block_until_ready(WAYS[way](*part))
    return count, time.perf_counter() - start, time.process_time() - busy


def measure(ways, cells, most=16):
    """{way: (cells, wall, processor seconds)}; the ways take turns at each ε, the others at `most` cells of it."""
    totals = {way: np.zeros(3) for way in ways}
    for i, batch in enumerate(batches(cells)):
        for way in ways:
            limit = len(batch[0]) if way == "the sweep's program" else most
            if i == 0:
                run_timed(way, batch, limit)
            totals[way] += run_timed(way, batch, limit)
    return totals


def share_of_data(most=4):
    """The share of a call's processor time that grows with the pairs: a line through N and 4N pairs, all ε."""
    seconds = np.zeros(2)
    for i, pairs in enumerate((PAIRS, 4 * PAIRS)):
        for j, batch in enumerate(batches(len(EPSILONS) * most, pairs)):
            if j == 0:
                run_timed("calls one by one", batch, most)
            seconds[i] += run_timed("calls one by one", batch, most)[2]
    return min(1.0, (seconds[1] - seconds[0]) / 3 / seconds[0])


def limits(batch, calls, data_share):
    """What the numbers of both ways allow.

    A batch can use c cores, the calls use u of them already: the ratio of wall times is at most c/u times what the
    batch saves in processor time. Calls that use less than one core were kept from it by other processes: they count
    as one, or a busy machine would look like room to spare. `roof`: the same for a batch of which nothing is left but
    the work that grows with the data, `data_share` of all.
    """
    (n, wall, busy), (n_calls, wall_calls, busy_calls) = batch, calls
    used, saved = max(1.0, busy_calls / wall_calls), (busy_calls / n_calls) / (busy / n)
    return {
        "cores": cores(),
        "cores_used_by_calls": used,
        "processor_ms_per_cell": 1e3 * busy / n,
        "beside_processor_ms_per_cell": 1e3 * busy_calls / n_calls,
        "saved_processor_time": saved,
        "ratio_limit": cores() / used * saved,
        "data_share": data_share,
        "roof": cores() / used * saved / data_share,
        "ratio_all_cores": (wall_calls / n_calls) / (wall / n),
    }


def _child(cells, half, halves):
    """A process that says when it is compiled, waits for a line and answers with (cells, wall, processor seconds)."""
    found = list(batches(cells))
    run_timed("the sweep's program", found[0], cells)
    print("ready", flush=True)
    sys.stdin.readline()
    totals = sum(np.array(run_timed("the sweep's program", batch, cells)) for batch in found[half::halves])
    print(json.dumps(totals.tolist()), flush=True)


def in_processes(cells, devices=1, halves=2):
    """(cells, wall, processor seconds) of `halves` processes at once, each with every `halves`-th ε."""
    environment = os.environ | {"JAX_NUM_CPU_DEVICES": str(devices)}
    command = [sys.executable, __file__, "--cells", str(cells), "--child"]
    children = [
        subprocess.Popen(
            [*command, str(half), str(halves)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for half in range(halves)
    ]
    for child in children:
        if child.stdout.readline() != "ready\n":
            raise RuntimeError("a process of the benchmark ended before its time")
    start = time.perf_counter()
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    found = np.array([json.loads(child.stdout.readline()) for child in children])
    wall = time.perf_counter() - start
    for child in children:
        child.communicate()
    return found[:, 0].sum(), wall, found[:, 2].sum()


def line(way, totals):
    count, wall, busy = totals
    print(
        f"| {way} | {count:.0f} | {1e3 * wall / count:.1f} | {1e3 * busy / count:.1f} | {busy / wall:.2f} |",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=192, help="a multiple of 16")
    parser.add_argument("--way", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--child", type=int, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child is not None:
        _child(arguments.cells, *arguments.child)
        return
    print("| way | cells | ms per cell | processor ms per cell | cores used |\n|---|---|---|---|---|")
    found = measure(arguments.way, arguments.cells)
    for way, totals in found.items():
        line(way, totals)
    if jax.default_backend() == "cpu":
        line("two processes", in_processes(arguments.cells))
        line("a device per core, as the command", in_processes(arguments.cells, cores(), halves=1))


if __name__ == "__main__":
    main()
