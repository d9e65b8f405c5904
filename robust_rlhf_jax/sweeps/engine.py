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
from .programs import REFERENCE, corrupt_batch, gather, sample_batch, solve_batch


class SweepResult(NamedTuple):
    """`rows`: one dict per cell; `label_entropy`: bits per family."""

    rows: list[dict[str, Any]]
    label_entropy: dict[str, float]


class Lanes(NamedTuple):
    """A batch of cells that share an attack: indices into worlds and data sets, ε, and one key each."""

    family: np.ndarray
    seed: np.ndarray
    dataset: np.ndarray
    epsilons: np.ndarray
    keys: jax.Array


def run_sweep(config: SweepConfig, on_batch: Callable[[int], None] = lambda cells: None) -> SweepResult:
    """All cells of `config`; `on_batch(n)` is called after every n finished cells.

    Data sets depend on (family, seed) alone, so that every attack, ε and algorithm sees the same draws.

    **Raises:** ValueError for a wrong configuration.
    """
    config.check()
    k_world, k_data, k_attack, k_solve = jax.random.split(jax.random.key(config.seed), 4)
    worlds = stack_worlds(build_worlds(config.preset, config.families, k_world))
    family = np.repeat(np.arange(len(config.families)), config.seeds)
    keys = jax.random.split(k_data, len(family))
    datasets, entropies = sample_batch(keys, worlds, family, config.temperature, config.pairs)
    rows: list[dict[str, Any]] = []
    reference = _reference(config, k_solve, datasets, worlds, family)
    if REFERENCE in config.algorithms:
        rows += _reference_rows(config, family, reference)
        on_batch(len(rows))
    for attack, lanes in _batches(config, family, k_attack):
        data = corrupt_batch(
            lanes.keys, datasets, worlds, lanes.dataset, lanes.family, lanes.epsilons, attack
        )
        for name in config.algorithms:
            if name == REFERENCE:
                continue
            outcome = solve_batch(lanes.keys, data, worlds, lanes.family, lanes.epsilons, name)
            new = list(_rows(config, attack, name, lanes, outcome))
            rows += new
            on_batch(len(new))
    by_family = np.asarray(entropies).reshape(len(config.families), -1).mean(axis=1)
    return SweepResult(rows, dict(zip(config.families, by_family.tolist(), strict=True)))


def _reference(config, key, datasets, worlds, family):
    if REFERENCE not in config.algorithms:
        return None
    keys = jax.random.split(key, len(family))
    parts = []
    for lanes in _chunks(np.arange(len(family)), config.lanes):
        zero = jnp.zeros(len(lanes))
        parts.append(
            solve_batch(keys[lanes], gather(datasets, lanes), worlds, family[lanes], zero, "standard")
        )
    gaps, values, statuses = (np.concatenate(column) for column in zip(*parts, strict=True))
    return gaps, values, statuses


def _reference_rows(config, family, outcome):
    """The reference knows no attack: its outcome for (family, seed) stands in every cell of that pair."""
    seeds = np.tile(np.arange(config.seeds), len(config.families))
    rows = []
    for attack, epsilon in itertools.product(config.attacks, config.epsilons):
        epsilons = np.full(len(family), epsilon, np.float32)
        lanes = Lanes(family, seeds, np.arange(len(family)), epsilons, None)  # type: ignore[arg-type]
        rows += _rows(config, attack, REFERENCE, lanes, outcome)
    return rows


def _chunks(indices: np.ndarray, size: int) -> Iterator[np.ndarray]:
    """Equal chunks; the last is filled up by repeating its final entry, so that no new shape is compiled."""
    size = min(size, len(indices))
    for start in range(0, len(indices), size):
        chunk = indices[start : start + size]
        yield np.pad(chunk, (0, size - len(chunk)), mode="edge")


def _batches(config: SweepConfig, family: np.ndarray, key: jax.Array) -> Iterator[tuple[str, Lanes]]:
    seeds = np.tile(np.arange(config.seeds), len(config.families))
    # One ε per batch as far as possible: lanes that need equally many iterations wait for each other least.
    grid = [(e, d) for e in range(len(config.epsilons)) for d in range(len(family))]
    epsilon_index, dataset = (np.asarray(column) for column in zip(*grid, strict=True))
    values = np.asarray(config.epsilons, np.float32)
    for a, attack in enumerate(config.attacks):
        keys = jax.random.split(jax.random.fold_in(key, a), len(grid))
        for chunk in _chunks(np.arange(len(grid)), config.lanes):
            d = dataset[chunk]
            yield attack, Lanes(family[d], seeds[d], d, values[epsilon_index[chunk]], keys[chunk])


def _rows(config, attack, algorithm, lanes: Lanes, outcome):
    """One dict per distinct cell of a batch (padding repeats cells)."""
    seen = set()
    gaps, values, statuses = (np.asarray(column) for column in outcome)
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
        }
