"""How many cells a batch takes, where nobody says: what memory holds, without a nearly empty last batch."""

import os
from pathlib import Path

import jax

from .batches import cells_per_attack
from .config import SweepConfig
from .families import PRESETS, World
from .programs import sample_world

# Batches are what is stored and what a stop can lose; on CPU, whose cells run one by one, larger ones gain nothing but
# that the last of a device's cells waits for the others less often.
MOST_ON_CPU, MOST_PER_CORE = 24, 12
MOST_ELSEWHERE = 256
# An algorithm's working arrays in units of its data set, with room to spare: `benchmarks/lane_memory.py` measured
# 2.1 to 3.1 for eight algorithms on CPU.
WORKING_SETS = 8
# The rest is for programs, for XLA's own room and for other processes.
SHARE = 0.5
UNKNOWN_MEMORY = 4 << 30


def lanes_that_fit(config: SweepConfig, worlds: World, memory: int | None = None) -> int:
    """`config.lanes`, or if that is None the number of cells per batch that memory allows.

    One cell takes D (1 + w) bytes: its attacked data set, D bytes by `jax.eval_shape`, and w = `WORKING_SETS` times
    as much to work in. Half of the memory, less the clean data sets, holds m cells; at most 24 on CPU, or 12 a device
    if that is more, and 256 a device elsewhere. The n cells of an attack then need ⌈n/m⌉ batches, and each takes
    ⌈n/⌈n/m⌉⌉ cells: the last lacks fewer cells than there are batches. `memory` in bytes; this machine's if None.
    """
    if config.lanes is not None:
        return config.lanes
    one = data_bytes(config, worlds)
    clean = one * len(config.families) * config.seeds
    room = SHARE * (memory_bytes() if memory is None else memory) - clean
    devices = jax.device_count()
    on_cpu = jax.default_backend() == "cpu"
    most = max(MOST_ON_CPU, MOST_PER_CORE * devices) if on_cpu else MOST_ELSEWHERE * devices
    fit = max(1, min(most, int(room / (one * (1 + WORKING_SETS)))))
    n = cells_per_attack(config)
    batches = -(-n // fit)
    return -(-n // batches)


def data_bytes(config: SweepConfig, worlds: World) -> int:
    """Of one data set of the sweep; nothing is computed."""

    def sample(key, mdp, behaviour):
        return sample_world(key, mdp, behaviour, config.pairs, segment=PRESETS[config.preset].segment)

    world = jax.tree.map(lambda leaf: leaf[0], worlds)
    shapes = jax.eval_shape(sample, jax.random.key(0), *world)
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes))


def memory_bytes() -> int:
    """Of all devices together; on CPU the machine's, or less where a control group allows less.

    Not what is free at the moment: batches would then differ from run to run, and a stopped sweep would not find
    its own.
    """
    if jax.default_backend() != "cpu":
        limits = [(device.memory_stats() or {}).get("bytes_limit") for device in jax.devices()]
        return sum(limit or UNKNOWN_MEMORY for limit in limits)
    try:
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return UNKNOWN_MEMORY
    group = Path("/sys/fs/cgroup/memory.max")
    allowed = group.read_text().strip() if group.exists() else "max"
    return min(physical, int(allowed)) if allowed.isdigit() else physical
