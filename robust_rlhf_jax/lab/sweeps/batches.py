"""The cells of a sweep in batches that are computed, reported and stored as one; how many: `batch_size.py`."""

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from .config import SweepConfig
from .programs import REFERENCE

NO_ATTACK = "none"


class Lanes(NamedTuple):
    """Cells that share an attack: index of the family, seed and data set of each, and its ε."""

    family: np.ndarray
    seed: np.ndarray
    dataset: np.ndarray
    epsilons: np.ndarray


class Group(NamedTuple):
    """Cells that see the same data, for one algorithm after the other."""

    attack: str
    lanes: Lanes
    algorithms: tuple[str, ...]


def groups(config: SweepConfig, size: int) -> Iterator[Group]:
    """All cells in groups of at most `size`; first those that no attack changes: the reference, and ε = 0."""
    n = len(config.families) * config.seeds
    others = tuple(name for name in config.algorithms if name != REFERENCE)
    untouched = (REFERENCE,) * (REFERENCE in config.algorithms) + others * (0.0 in config.epsilons)
    if untouched:
        for dataset in _chunks(_seed_by_seed(config), size):
            yield Group(NO_ATTACK, _lanes(config, dataset, np.zeros(len(dataset))), untouched)
    shares = [epsilon for epsilon in config.epsilons if epsilon]
    if not others:
        return
    # One ε per batch as far as possible: lanes that need equally many iterations wait for each other least.
    epsilons, dataset = np.repeat(shares, n), np.tile(_seed_by_seed(config), len(shares))
    for attack in config.attacks:
        for chunk in _chunks(np.arange(len(dataset)), size):
            yield Group(attack, _lanes(config, dataset[chunk], epsilons[chunk]), others)


def _seed_by_seed(config: SweepConfig) -> np.ndarray:
    """All data sets, whose numbers go family by family: each device, with its run of lanes, gets all families alike."""
    return np.arange(len(config.families) * config.seeds).reshape(-1, config.seeds).T.ravel()


def cells_per_attack(config: SweepConfig) -> int:
    """Cells of the larger groups: those of one attack, or the data sets where no ε is above 0."""
    shares = sum(epsilon > 0 for epsilon in config.epsilons)
    return len(config.families) * config.seeds * max(shares, 1)


def standing(config: SweepConfig, algorithm: str) -> list[tuple[str, float]]:
    """(attack, ε) of the cells in which an outcome without attack stands: the reference's in all, others' at ε = 0."""
    return list(itertools.product(config.attacks, config.epsilons if algorithm == REFERENCE else (0.0,)))


def copies(config: SweepConfig, attack: str, algorithm: str) -> int:
    """The number of cells that an outcome has."""
    return len(standing(config, algorithm)) if attack == NO_ATTACK else 1


def filled(lanes: Lanes, width: int) -> Lanes:
    """`width` lanes, the last cell repeated, so that no new shape is compiled."""
    return Lanes(*(np.pad(x, (0, width - len(x)), mode="edge") for x in lanes))


def _lanes(config: SweepConfig, dataset: np.ndarray, epsilons: Float[np.ndarray, " L"]) -> Lanes:
    return Lanes(dataset // config.seeds, dataset % config.seeds, dataset, np.asarray(epsilons, np.float32))


def _chunks(indices: np.ndarray, size: int) -> Iterator[np.ndarray]:
    for start in range(0, len(indices), size):
        yield indices[start : start + size]
