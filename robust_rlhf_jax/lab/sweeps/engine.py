"""Run a sweep: the same three programs over batches of cells, with a word after every batch."""

import contextlib
import dataclasses
import os
import time
from collections.abc import Callable, Generator, Iterable
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.preferences import PreferenceData

from .batch_size import check_memory, lanes_that_fit, process_bytes
from .batches import NO_ATTACK, Group, Lanes, cells_per_attack, copies, filled, groups, standing
from .config import EPSILON_DIGITS, SweepConfig
from .families import PRESETS, World, alike, build_worlds, stack_worlds
from .keys import cell_keys
from .over_devices import lane_counts, place
from .programs import REFERENCE, clean_batch, corrupt_batch, sample_batch, solve_batch
from .store import Store, batch_name, opened, world_digests

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


class Task(NamedTuple):
    """A job of the sweep `config`; `size`: bytes that a process of its own needs for it."""

    config: SweepConfig
    job: Job
    size: int


class Origin(NamedTuple):
    """Where the rows of a part come from."""

    config: SweepConfig
    attack: str
    algorithm: str


# Name of a part → where its rows come from.
Origins = dict[str, Origin]
# Yields name of a part → its rows, some parts at a time and in any order; is closed where the sweep stops early.
Execute = Callable[[list[Task]], Generator[dict[str, Rows], None, None]]


class _Planned(NamedTuple):
    """A sweep whose families share their programs: its worlds, its jobs and their parts."""

    config: SweepConfig
    worlds: World
    jobs: list[Job]
    origins: Origins


class _DataSets:
    """The data sets of the last sweep asked for, drawn when they are needed, and the label entropies of all."""

    def __init__(self, sweeps: list[_Planned]):
        self._worlds = {sweep.config: sweep.worlds for sweep in sweeps}
        self._last: tuple[SweepConfig | None, Material | None] = None, None
        self._entropies: dict[SweepConfig, np.ndarray] = {}

    def material(self, config: SweepConfig) -> Material:
        kept, material = self._last
        if material is None or kept != config:
            self._last = None, None  # before the next is drawn: memory may hold one alone
            material = sample_material(config, self._worlds[config])
            self._last = config, material
            self._entropies[config] = material.entropies
        return material

    def entropies(self, config: SweepConfig) -> np.ndarray:
        return self._entropies[config] if config in self._entropies else self.material(config).entropies


def run_sweep(
    config: SweepConfig,
    on_batch: Callable[[int, int], None] = lambda cells, free: None,
    store: Store | str | os.PathLike[str] | None = None,
    execute: Execute | None = None,
) -> SweepResult:
    """All cells of `config`.

    `on_batch(n, free)` is called after every n finished cells; `free` of them cost nothing now, because `store` had
    them or because an outcome without attack stands in them. Data sets depend on (family, seed) alone, so that every
    attack, ε and algorithm sees the same draws. Batches that `store` has are read from it, others are written to it as
    soon as they are done: a sweep that was stopped resumes there; the path of a folder will do, RESULTS/parts for
    `robust-rlhf report RESULTS`. On CPU a cell's numbers are to the bit the same
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
    store = opened(store, config)
    sweeps = [_planned(config, worlds) for config, worlds in _alike_sweeps(config)]
    origins = {part: origin for sweep in sweeps for part, origin in sweep.origins.items()}
    done = {part: rows for part in origins if (rows := store.read(part)) is not None}
    _report_resumed(done, origins, on_batch)
    tasks = [task for sweep in sweeps for task in _missing(sweep, done)]
    datasets = _DataSets(sweeps)
    parts = _one_by_one(tasks, datasets) if execute is None else execute(tasks)
    with contextlib.closing(parts):
        for found in parts:
            for part, rows in found.items():
                store.write(part, rows)
            done |= found
            on_batch(*_cells(found, origins))
    rows = [row for sweep in sweeps for row in _in_order(done, sweep.origins)]
    bits = {name: value for sweep in sweeps for name, value in _label_entropy(sweep, datasets, store).items()}
    return SweepResult(rows, {name: bits[name] for name in config.families})


def _alike_sweeps(config: SweepConfig) -> list[tuple[SweepConfig, World]]:
    """A sweep for each set of families that share their programs, and its worlds stacked.

    **Raises:** ValueError for one that memory cannot hold.
    """
    built = dict(zip(config.families, _built(config), strict=True))
    found = []
    for families in alike(built):
        sweep = dataclasses.replace(config, families=families)
        worlds = stack_worlds([built[name] for name in families])
        check_memory(sweep, worlds)
        found.append((sweep, worlds))
    return found


def _built(config: SweepConfig) -> list[World]:
    return build_worlds(config.preset, config.families, jax.random.key(config.seed))


def sweep_worlds(config: SweepConfig) -> World:
    """The worlds of all families, which are alike, stacked."""
    return stack_worlds(_built(config))


def _planned(config: SweepConfig, worlds: World) -> _Planned:
    jobs = _plan(config, worlds)
    origins = {
        part: Origin(config, job.group.attack, name) for job in jobs for name, part in job.parts.items()
    }
    return _Planned(config, worlds, jobs, origins)


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


def _missing(sweep: _Planned, done: dict[str, Rows]) -> list[Task]:
    jobs = [
        job._replace(parts={name: part for name, part in job.parts.items() if part not in done})
        for job in sweep.jobs
    ]
    return [
        Task(sweep.config, job, process_bytes(sweep.config, sweep.worlds, job.width))
        for job in jobs
        if job.parts
    ]


def _one_by_one(tasks: list[Task], datasets: _DataSets):
    """The `execute` of this process."""
    for task in tasks:
        yield from solve_job(task.config, task.job, datasets.material(task.config))


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


def _report_resumed(done: dict[str, Rows], origins: Origins, on_batch: Callable[[int, int], None]) -> None:
    resumed, _ = _cells(done, origins)
    if resumed:
        on_batch(resumed, resumed)


def _cells(parts: dict[str, Rows], origins: Origins) -> tuple[int, int]:
    """(cells in which these rows stand, how many more those are than the rows)."""
    cells = sum(len(rows) * copies(*origins[part]) for part, rows in parts.items())
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
    found = corrupt_batch(
        keys, material.datasets, material.worlds, dataset, family, epsilons, group.attack, counts=counts
    )
    # Placed as data without attack are, or the cache of compiled programs would hold two for the same work.
    return place(found, split=True)


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
    """Wait in short naps, since a thread that waits inside XLA does not react to Ctrl-C."""
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


def _in_order(done: dict[str, Rows], origins: Origins) -> Rows:
    """Rows without attack in every cell where they stand, then the others as planned."""
    untouched: dict[Origin, Rows] = {}
    for part, origin in origins.items():
        if origin.attack == NO_ATTACK:
            untouched.setdefault(origin, []).extend(done[part])
    rows = [
        {**row, "attack": attack, "epsilon": _as_given(epsilon)}
        for origin, once in untouched.items()
        for attack, epsilon in standing(origin.config, origin.algorithm)
        for row in once
    ]
    return rows + [
        row for part, origin in origins.items() if origin.attack != NO_ATTACK for row in done[part]
    ]


def _label_entropy(sweep: _Planned, datasets: _DataSets, store: Store) -> dict[str, float]:
    """Mean bits per family; a part of their own, so that a sweep with all its parts draws nothing."""
    config, lanes = sweep.config, _dataset_lanes(sweep.config)
    part = batch_name(config, world_digests(config, sweep.worlds), NO_ATTACK, LABEL_ENTROPY, lanes)
    rows = store.read(part)
    if rows is None:
        by_family = datasets.entropies(config).reshape(len(config.families), -1).mean(axis=1).tolist()
        rows = [{"family": f, "bits": bits} for f, bits in zip(config.families, by_family, strict=True)]
        store.write(part, rows, LABEL_ENTROPY)
    return {row["family"]: row["bits"] for row in rows}
