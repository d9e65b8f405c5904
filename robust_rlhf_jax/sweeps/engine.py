"""Run a sweep: the same three programs over batches of cells, with a word after every batch."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from robust_rlhf_jax.iterate import Status

from .config import EPSILON_DIGITS, SweepConfig
from .families import build_worlds, stack_worlds
from .keys import cell_keys
from .programs import REFERENCE, corrupt_batch, gather, sample_batch, solve_batch
from .store import MemoryStore, Store, batch_name


class SweepResult(NamedTuple):
    """`rows`: one dict per cell; `label_entropy`: bits per family."""

    rows: list[dict[str, Any]]
    label_entropy: dict[str, float]


class Lanes(NamedTuple):
    """A batch of cells that share an attack: index of the family, seed and data set of each, and its ε."""

    family: np.ndarray
    seed: np.ndarray
    dataset: np.ndarray
    epsilons: np.ndarray


class Material(NamedTuple):
    """What all cells share: worlds by family, one clean data set per (family, seed)."""

    worlds: Any
    datasets: Any
    label_entropy: dict[str, float]


def run_sweep(
    config: SweepConfig,
    on_batch: Callable[[int], None] = lambda cells: None,
    store: Store | None = None,
) -> SweepResult:
    """All cells of `config`; `on_batch(n)` is called after every n finished cells.

    Data sets depend on (family, seed) alone, so that every attack, ε and algorithm sees the same draws. Batches
    that `store` has are read from it, others are written to it as soon as they are done: a sweep that was stopped
    goes on where it was.

    **Raises:** ValueError for a wrong configuration.
    """
    config.check()
    store = MemoryStore() if store is None else store
    material = _material(config)
    rows: list[dict[str, Any]] = []
    if REFERENCE in config.algorithms:
        rows += _reference_rows(config, material, store)
        on_batch(len(rows))
    others = [name for name in config.algorithms if name != REFERENCE]
    for attack, lanes in _batches(config):
        missing = [name for name in others if store.read(batch_name(config, attack, name, lanes)) is None]
        data = _corrupt(config, material, attack, lanes) if missing else None
        for name in others:
            new = _cells(config, material, store, attack, name, lanes, data)
            rows += new
            on_batch(len(new))
    return SweepResult(rows, material.label_entropy)


def _material(config: SweepConfig) -> Material:
    worlds = stack_worlds(build_worlds(config.preset, config.families, jax.random.key(config.seed)))
    family = np.repeat(np.arange(len(config.families)), config.seeds)
    seeds = np.tile(np.arange(config.seeds), len(config.families))
    keys = cell_keys(config, "data", family, seeds)
    datasets, entropies = sample_batch(keys, worlds, family, config.temperature, config.pairs)
    by_family = np.asarray(entropies).reshape(len(config.families), -1).mean(axis=1)
    return Material(worlds, datasets, dict(zip(config.families, by_family.tolist(), strict=True)))


def _corrupt(config, material, attack, lanes: Lanes):
    keys = cell_keys(config, f"attack {attack}", lanes.family, lanes.seed)
    return corrupt_batch(
        keys, material.datasets, material.worlds, lanes.dataset, lanes.family, lanes.epsilons, attack
    )


def _cells(config, material, store, attack, name, lanes: Lanes, data) -> list[dict[str, Any]]:
    """Rows of one batch, from the store or computed."""
    part = batch_name(config, attack, name, lanes)
    rows = store.read(part)
    if rows is None:
        keys = cell_keys(config, f"solve {name}", lanes.family, lanes.seed)
        outcome = solve_batch(keys, data, material.worlds, lanes.family, lanes.epsilons, name)
        rows = list(_rows(config, attack, name, lanes, outcome))
        store.write(part, rows)
    return rows


def _reference_rows(config: SweepConfig, material: Material, store) -> list[dict[str, Any]]:
    """The reference knows no attack: its outcome for (family, seed) stands in every cell of that pair."""
    n = len(config.families) * config.seeds
    rows: list[dict[str, Any]] = []
    for dataset in _chunks(np.arange(n), config.lanes):
        family, seed = dataset // config.seeds, dataset % config.seeds
        lanes = Lanes(family, seed, dataset, np.zeros(len(dataset), np.float32))
        part = batch_name(config, "none", REFERENCE, lanes)
        found = store.read(part)
        if found is None:
            keys = cell_keys(config, "solve standard", family, seed)
            clean = gather(material.datasets, dataset)
            outcome = solve_batch(keys, clean, material.worlds, family, jnp.zeros(len(dataset)), "standard")
            found = list(_rows(config, "none", REFERENCE, lanes, outcome))
            store.write(part, found)
        rows += found
    return [
        {**row, "attack": attack, "epsilon": round(float(np.float32(epsilon)), EPSILON_DIGITS)}
        for attack, epsilon in itertools.product(config.attacks, config.epsilons)
        for row in rows
    ]


def _chunks(indices: np.ndarray, size: int) -> Iterator[np.ndarray]:
    """Equal chunks; the last is filled up by repeating its final entry, so that no new shape is compiled."""
    size = min(size, len(indices))
    for start in range(0, len(indices), size):
        chunk = indices[start : start + size]
        yield np.pad(chunk, (0, size - len(chunk)), mode="edge")


def _batches(config: SweepConfig) -> Iterator[tuple[str, Lanes]]:
    n = len(config.families) * config.seeds
    # One ε per batch as far as possible: lanes that need equally many iterations wait for each other least.
    grid = [(e, d) for e in range(len(config.epsilons)) for d in range(n)]
    epsilon_index, dataset = (np.asarray(column) for column in zip(*grid, strict=True))
    values = np.asarray(config.epsilons, np.float32)
    for attack in config.attacks:
        for chunk in _chunks(np.arange(len(grid)), config.lanes):
            d = dataset[chunk]
            yield attack, Lanes(d // config.seeds, d % config.seeds, d, values[epsilon_index[chunk]])


def _rows(config, attack, algorithm, lanes: Lanes, outcome):
    """One dict per distinct cell of a batch (padding repeats cells)."""
    seen = set()
    gaps, values, statuses, calls = (np.asarray(column) for column in outcome)
    for i, (d, epsilon) in enumerate(zip(lanes.dataset.tolist(), lanes.epsilons.tolist(), strict=True)):
        if (d, epsilon) in seen:
            continue
        seen.add((d, epsilon))
        yield {
            "family": config.families[lanes.family[i]],
            "attack": attack,
            "epsilon": round(epsilon, EPSILON_DIGITS),
            "seed": int(lanes.seed[i]),
            "algorithm": algorithm,
            "normalised_gap": float(gaps[i]),
            "value": float(values[i]),
            "status": Status(int(statuses[i])).name.lower(),
            "oracle_calls": int(calls[i]),
        }
