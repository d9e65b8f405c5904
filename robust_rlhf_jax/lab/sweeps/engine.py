"""Run a sweep: the same three programs over batches of cells, with a word after every batch."""

import contextlib
import dataclasses
import functools
import time
from collections.abc import Callable, Generator, Iterable
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.preferences import PreferenceData

from .batch_size import check_memory, lanes_that_fit
from .batches import NO_ATTACK, Group, Lanes, cells_per_attack, copies, filled, groups, standing
from .config import EPSILON_DIGITS, SweepConfig
from .families import PRESETS, World, alike, build_worlds, stack_worlds
from .keys import cell_keys
from .over_devices import lane_counts, place
from .programs import REFERENCE, clean_batch, corrupt_batch, sample_batch, solve_batch
from .store import MemoryStore, Store, batch_name, world_digests

Rows = list[dict[str, Any]]
# The kind of part that holds no cells.
LABEL_ENTROPY = "label entropy"


class SweepResult(NamedTuple):
    """`rows`: one dict per cell; `label_entropy`: bits per family.

    **Example:**

    >>> from robust_rlhf_jax.lab.sweeps import SweepConfig, run_sweep
    >>> config = SweepConfig("tiny", ("chain",), ("flip_random",), (0.1,), seeds=1, algorithms=("standard",))
    >>> found = run_sweep(config)
    >>> len(found.rows), 0 < found.label_entropy["chain"] < 1
    (1, True)
    """

    rows: Rows
    label_entropy: dict[str, float]


class Material(NamedTuple):
    """What all cells share: worlds by family, one clean data set per (family, seed), its label entropy in bits."""

    worlds: World
    datasets: Any
    entropies: np.ndarray


class Job(NamedTuple):
    """What a group still lacks. `parts`: algorithm → name of its part; `width`: lanes of a batch with padding."""

    group: Group
    width: int
    parts: dict[str, str]


# Name of a part → its attack and its algorithm.
Origins = dict[str, tuple[str, str]]
# Yields name of a part → its rows, some parts at a time and in any order; is closed where the sweep stops early.
Execute = Callable[[SweepConfig, list[Job]], Generator[dict[str, Rows], None, None]]


def run_sweep(
    config: SweepConfig,
    on_batch: Callable[[int, int], None] = lambda cells, free: None,
    store: Store | None = None,
    execute: Execute | None = None,
) -> SweepResult:
    """All cells of `config`.

    `on_batch(n, free)` is called after every n finished cells; `free` of them cost nothing now, because `store` had
    them or because an outcome without attack stands in them. Data sets depend on (family, seed) alone, so that every
    attack, ε and algorithm sees the same draws. Batches that `store` has are read from it, others are written to it as
    soon as they are done: a sweep that was stopped resumes there. On CPU a cell's numbers are to the bit the same
    whatever `lanes`, the other cells and the number of devices; elsewhere they are for a fixed `lanes`.
    `execute` computes what is missing, in this process if None; only this process reads and writes `store`.

    **Raises:** ValueError for a wrong configuration.

    **Example:**

    >>> from robust_rlhf_jax.lab.sweeps import SweepConfig, run_sweep
    >>> config = SweepConfig("tiny", ("chain",), ("flip_random",), (0.1,), seeds=1, algorithms=("standard",))
    >>> found = run_sweep(config)
    >>> [(row["algorithm"], row["epsilon"], row["status"]) for row in found.rows]
    [('standard', 0.1, 'converged')]
    """
    config.check()
    store = MemoryStore() if store is None else store
    built = dict(zip(config.families, _built(config), strict=True))
    sweeps = [dataclasses.replace(config, families=families) for families in alike(built)]
    worlds = [stack_worlds([built[name] for name in sweep.families]) for sweep in sweeps]
    for sweep, stacked in zip(sweeps, worlds, strict=True):
        check_memory(sweep, stacked)
    found = [
        _of_alike(sweep, stacked, on_batch, store, execute)
        for sweep, stacked in zip(sweeps, worlds, strict=True)
    ]
    bits = {name: value for result in found for name, value in result.label_entropy.items()}
    rows = [row for result in found for row in result.rows]
    return SweepResult(rows, {name: bits[name] for name in config.families})


def _of_alike(
    config: SweepConfig,
    worlds: World,
    on_batch: Callable[[int, int], None],
    store: Store,
    execute: Execute | None,
) -> SweepResult:
    """A sweep whose families share their programs."""
    material = functools.cache(lambda: sample_material(config, worlds))
    plan = _plan(config, worlds)
    origins = {part: (job.group.attack, name) for job in plan for name, part in job.parts.items()}
    done = {part: rows for part in origins if (rows := store.read(part)) is not None}
    _report_resumed(config, done, origins, on_batch)
    jobs = _missing(plan, done)
    parts = _one_by_one(config, jobs, material) if execute is None else execute(config, jobs)
    with contextlib.closing(parts):
        for found in parts:
            for part, rows in found.items():
                store.write(part, rows)
            done |= found
            on_batch(*_cells(config, found, origins))
    return SweepResult(_in_order(config, done, origins), _label_entropy(config, worlds, material, store))


def _built(config: SweepConfig) -> list[World]:
    return build_worlds(config.preset, config.families, jax.random.key(config.seed))


def sweep_worlds(config: SweepConfig) -> World:
    """The worlds of all families, which are alike, stacked."""
    return stack_worlds(_built(config))


def _plan(config: SweepConfig, worlds: World) -> list[Job]:
    """All groups with all their parts."""
    size = lanes_that_fit(config, worlds)
    width = _up_to_devices(min(size, cells_per_attack(config)))
    digests = world_digests(config, worlds)
    return [
        Job(group, width, part_names(config, digests, group, width, group.algorithms))
        for group in groups(config, size)
    ]


def part_names(config: SweepConfig, digests: list[str], group: Group, width: int, algorithms: Iterable[str]):
    """Algorithm → name of the part that holds the group's rows."""
    return {name: batch_name(config, digests, group.attack, name, group.lanes, width) for name in algorithms}


def _missing(plan: list[Job], done: dict[str, Rows]) -> list[Job]:
    jobs = [
        job._replace(parts={name: part for name, part in job.parts.items() if part not in done})
        for job in plan
    ]
    return [job for job in jobs if job.parts]


def _one_by_one(config: SweepConfig, jobs: list[Job], material: Callable[[], Material]):
    """The `execute` of this process."""
    for job in jobs:
        yield from solve_job(config, job, material())


def solve_job(config: SweepConfig, job: Job, material: Material) -> Generator[dict[str, Rows], None, None]:
    """The parts of a job, one at a time: the data are corrupted once for all its algorithms."""
    width = _up_to_devices(job.width)  # where the job was planned there may be other devices
    data = _corrupt(config, material, job.group, width)
    for name, part in job.parts.items():
        yield {part: _solve(config, material, job.group, name, data, width)}


def sample_material(config: SweepConfig, worlds: World) -> Material:
    """The clean data sets of a sweep beside its worlds."""
    n = len(config.families) * config.seeds
    lanes = _dataset_lanes(config)
    width = _up_to_devices(n)
    padded = filled(lanes, width)
    keys, family = place((cell_keys(config, "data", padded.family, padded.seed), padded.family), split=True)
    worlds = place(worlds, split=False)
    counts = place(lane_counts(n, width), split=True)
    preset = PRESETS[config.preset]
    temperature = config.temperature * preset.temperature
    found = sample_batch(
        keys, worlds, family, temperature, config.pairs, counts=counts, segment=preset.segment
    )
    return Material(worlds, place(found[0], split=False), np.asarray(found[1])[:n])


def _dataset_lanes(config: SweepConfig) -> Lanes:
    dataset = np.arange(len(config.families) * config.seeds)
    return Lanes(dataset // config.seeds, dataset % config.seeds, dataset, np.zeros(len(dataset), np.float32))


def _up_to_devices(width: int) -> int:
    return -(-width // jax.device_count()) * jax.device_count()


def _report_resumed(
    config: SweepConfig,
    done: dict[str, Rows],
    origins: Origins,
    on_batch: Callable[[int, int], None],
) -> None:
    resumed, _ = _cells(config, done, origins)
    if resumed:
        on_batch(resumed, resumed)


def _cells(config: SweepConfig, parts: dict[str, Rows], origins: Origins) -> tuple[int, int]:
    """(cells in which these rows stand, how many more those are than the rows)."""
    cells = sum(len(rows) * copies(config, *origins[part]) for part, rows in parts.items())
    return cells, cells - sum(map(len, parts.values()))


def _corrupt(config: SweepConfig, material: Material, group: Group, width: int):
    """The data of a group's cells, split over the devices."""
    lanes = filled(group.lanes, width)
    if group.attack == NO_ATTACK:
        return place(clean_batch(material.datasets, lanes.dataset), split=True)
    keys = cell_keys(config, f"attack {group.attack}", lanes.family, lanes.seed)
    counts = lane_counts(len(group.lanes.seed), width)
    keys, dataset, family, epsilons, counts = place(
        (keys, lanes.dataset, lanes.family, lanes.epsilons, counts), split=True
    )
    return corrupt_batch(
        keys, material.datasets, material.worlds, dataset, family, epsilons, group.attack, counts=counts
    )


def _solve(
    config: SweepConfig, material: Material, group: Group, name: str, data: PreferenceData, width: int
) -> Rows:
    """One row per cell of a batch. The reference is plain RLHF, and draws what that does."""
    lanes = filled(group.lanes, width)
    algorithm = "standard" if name == REFERENCE else name
    keys = cell_keys(config, f"solve {algorithm}", lanes.family, lanes.seed)
    counts = lane_counts(len(group.lanes.seed), width)
    keys, family, epsilons, counts = place((keys, lanes.family, lanes.epsilons, counts), split=True)
    outcome = solve_batch(keys, data, material.worlds, family, epsilons, algorithm, counts=counts)
    _wait(outcome)
    return _rows(config, group, name, outcome)


def _wait(outcome: Any) -> None:
    """In short naps: a thread that waits inside XLA hears no Ctrl-C."""
    while not all(leaf.is_ready() for leaf in outcome):
        time.sleep(0.002)


def _rows(config: SweepConfig, group: Group, algorithm: str, outcome: tuple[Array, ...]) -> Rows:
    gaps, values, statuses, calls = (np.asarray(column) for column in outcome)
    lanes = group.lanes
    return [
        {
            "family": config.families[family],
            "attack": group.attack,
            "epsilon": _as_given(epsilon),
            "seed": int(seed),
            "algorithm": algorithm,
            "normalised_gap": float(gaps[i]),
            "value": float(values[i]),
            "status": Status(int(statuses[i])).name.lower(),
            "oracle_calls": int(calls[i]),
        }
        for i, (family, seed, epsilon) in enumerate(
            zip(lanes.family, lanes.seed, lanes.epsilons, strict=True)
        )
    ]


def _as_given(epsilon: float) -> float:
    return round(float(np.float32(epsilon)), EPSILON_DIGITS)


def _in_order(config: SweepConfig, done: dict[str, Rows], origins: Origins) -> Rows:
    """Rows without attack in every cell where they stand, then the others as planned."""
    untouched: dict[str, Rows] = {}
    for part, (attack, algorithm) in origins.items():
        if attack == NO_ATTACK:
            untouched.setdefault(algorithm, []).extend(done[part])
    rows = [
        {**row, "attack": attack, "epsilon": _as_given(epsilon)}
        for algorithm, once in untouched.items()
        for attack, epsilon in standing(config, algorithm)
        for row in once
    ]
    return rows + [row for part, (attack, _) in origins.items() if attack != NO_ATTACK for row in done[part]]


def _label_entropy(
    config: SweepConfig, worlds: World, material: Callable[[], Material], store: Store
) -> dict[str, float]:
    """Mean bits per family; a part of their own, so that a sweep with all its parts draws nothing."""
    lanes = _dataset_lanes(config)
    part = batch_name(config, world_digests(config, worlds), NO_ATTACK, LABEL_ENTROPY, lanes)
    rows = store.read(part)
    if rows is None:
        by_family = material().entropies.reshape(len(config.families), -1).mean(axis=1).tolist()
        rows = [{"family": f, "bits": bits} for f, bits in zip(config.families, by_family, strict=True)]
        store.write(part, rows, LABEL_ENTROPY)
    return {row["family"]: row["bits"] for row in rows}
