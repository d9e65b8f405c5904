"""How many cells ("lanes") a batch takes, where nobody says: what memory holds, without a nearly empty last batch."""

import jax

from robust_rlhf_jax.memory import UNKNOWN, check_room, host_bytes

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
# A process of the default sweep with all its programs: .93 GB at most, of which its data are a small part.
PROGRAM_BYTES = 1 << 30
# The rest is for programs, for XLA's own room and for other processes.
SHARE = 0.5
# Data sets are linear in their pairs: shapes of more than this many are not asked for.
MOST_PAIRS = 1 << 20
# A row of the results, as Python holds it.
ROW_BYTES = 500


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


def check_memory(config: SweepConfig, worlds: World) -> None:
    """Check that the sweep can fit at all: its clean data sets, one attacked one and a copy of it, and its rows.

    **Raises:** ValueError with the memory that is needed.
    """
    datasets = len(config.families) * config.seeds
    width = min(config.lanes or 1, cells_per_attack(config))
    size = data_bytes(config, worlds) * (datasets + 2 * width) + ROW_BYTES * config.n_cells
    check_room("the sweep", size, "give fewer pairs, seeds or lanes", memory_bytes())


def process_bytes(config: SweepConfig, worlds: World, width: int) -> int:
    """What a process takes that computes batches of `width` lanes: clean and attacked data sets, room to work on one
    cell at a time, and JAX with its programs.
    """
    datasets = len(config.families) * config.seeds
    return data_bytes(config, worlds) * (datasets + width + WORKING_SETS) + PROGRAM_BYTES


def data_bytes(config: SweepConfig, worlds: World) -> int:
    """The bytes of one data set of the sweep; nothing is computed."""
    pairs = min(config.pairs, MOST_PAIRS)

    def sample(key, mdp, behaviour):
        return sample_world(key, mdp, behaviour, pairs, segment=PRESETS[config.preset].segment)

    world = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), worlds)
    shapes = jax.eval_shape(sample, jax.random.key(0), *world)
    size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes))
    return size * config.pairs // pairs


def memory_bytes() -> int:
    """The memory of all devices together; on CPU the machine's, or less if a control group allows less.

    Not what is free at the moment: batches would then differ from run to run, and a stopped sweep would not find
    its own.
    """
    if jax.default_backend() == "cpu":
        return host_bytes()
    limits = [(device.memory_stats() or {}).get("bytes_limit") for device in jax.devices()]
    return sum(limit or UNKNOWN for limit in limits)
