"""What a sweep is: families × attacks × ε × seeds × algorithms, at one size."""

import dataclasses
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from robust_rlhf_jax.checks import check_epsilons, check_positive, check_seed
from robust_rlhf_jax.collected import told_in_help
from robust_rlhf_jax.corruption_budget import shortest_decimal
from robust_rlhf_jax.lab.attacks import ATTACKS
from robust_rlhf_jax.lab.methods import METHODS
from robust_rlhf_jax.preferences.bradley_terry import check_temperature

from .families import PRESETS
from .programs import REFERENCE

# Rows hold ε rounded to so many digits: float32 knows no more.
EPSILON_DIGITS = 6


def _families() -> str:
    """The families of each preset, presets with the same ones together."""
    presets: dict[tuple[str, ...], list[str]] = {}
    for name, preset in PRESETS.items():
        presets.setdefault(tuple(preset.every), []).append(name)
    return "; ".join(f"{', '.join(families)} ({', '.join(names)})" for families, names in presets.items())


@told_in_help(
    {
        "a name in `PRESETS`": PRESETS,
        "families of the preset": [_families()],
        "names in `ATTACKS`": ATTACKS,
        "names in `METHODS`": (*METHODS, REFERENCE),
    }
)
@dataclasses.dataclass(frozen=True)
class SweepConfig:
    """A sweep as data.

    Args:
        preset: sizes of the worlds: a name in `PRESETS`. full has the 50x50 grid; in delivery, segments are
            shorter than plans.
        families: families of the preset.
        attacks: names in `ATTACKS`.
        epsilons: fractions of corrupt pairs, each in [0, 0.5).
        seeds: number of data sets per family.
        algorithms: names in `METHODS`. robust_policy_unknown gets no epsilon.
        n_pairs: pairs per data set; if not given, as the preset says.
        temperature: temperature of the Bradley-Terry labels.
        seed: seed of everything random.
        lanes: cells per batch, the unit that is stored; if not given, as many as memory allows.

    **Example:**

    >>> from robust_rlhf_jax.lab.sweeps import SweepConfig
    >>> config = SweepConfig(preset="tiny", families=("chain",), attacks=("flip_random",), epsilons=(0.0, 0.1), seeds=2)
    >>> config.check()
    >>> config.n_cells, config.pairs
    (12, 300)
    """

    preset: str = "quick"
    families: tuple[str, ...] = ("random", "chain", "gridworld")
    attacks: tuple[str, ...] = ("push_features", "flip_confident", "corrupt_transitions")
    epsilons: tuple[float, ...] = (0.0, 0.05, 0.1, 0.2, 0.3)
    seeds: int = 4
    algorithms: tuple[str, ...] = ("standard", "robust_policy", REFERENCE)
    n_pairs: int | None = None
    temperature: float = 1.0
    seed: int = 0
    lanes: int | None = None

    def __post_init__(self) -> None:
        """Numbers as Python's own, which the files of a sweep can hold, and ranges, lists and arrays as tuples."""
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, _plain(getattr(self, field.name)))

    def check(self) -> None:
        """**Raises:** ValueError that names the first setting that is wrong and what is allowed."""
        for name in ("families", "attacks", "epsilons", "algorithms"):
            _several(name, getattr(self, name))
        for name in ("seeds", "seed"):
            _whole(name, getattr(self, name))
        for name in ("n_pairs", "lanes"):
            if getattr(self, name) is not None:
                _whole(name, getattr(self, name))
        self._check_names()
        self._check_epsilons()
        self._check_counts()
        self._check_shares_of_pairs()
        check_positive(self.temperature, "temperature")
        check_temperature(self.temperature * PRESETS[self.preset].temperature, np.float32)
        check_seed(self.seed)

    def _check_names(self) -> None:
        _one_of("preset", [self.preset], PRESETS)
        every = PRESETS[self.preset].every
        for family in self.families:
            if family not in every:
                raise ValueError(
                    f"families: {family!r} is unknown; the preset {self.preset} has {', '.join(sorted(every))}."
                )
        _one_of("attacks", self.attacks, ATTACKS)
        _one_of("algorithms", self.algorithms, {**METHODS, REFERENCE: None})
        for name in ("families", "attacks", "epsilons", "algorithms"):
            if not getattr(self, name):
                raise ValueError(f"{name} is empty: name at least one.")
        for name in ("families", "attacks", "algorithms"):
            _distinct(name, getattr(self, name))

    def _check_epsilons(self) -> None:
        check_epsilons(self.epsilons)
        # ε as the results name it.
        as_named = [round(epsilon, EPSILON_DIGITS) for epsilon in self.epsilons]
        check_epsilons(as_named)
        _distinct("epsilons", as_named)

    def _check_counts(self) -> None:
        for name in ("seeds", "lanes"):
            given = getattr(self, name)
            if given is not None and given < 1:
                raise ValueError(f"{name}={given}: give 1 or more.")
        if self.n_pairs is not None and self.n_pairs < 3:
            raise ValueError(f"n_pairs={self.n_pairs}: the three-way split needs 3 pairs or more.")

    def _check_shares_of_pairs(self) -> None:
        least = 1.0 / self.pairs
        for epsilon in self.epsilons:
            if 0 < epsilon < least * (1 - 1e-9):
                raise ValueError(
                    f"epsilon={epsilon:g} of {self.pairs:,} pairs is no pair: give 0, or {least:.2g} or more."
                )

    @property
    def pairs(self) -> int:
        return PRESETS[self.preset].n_pairs if self.n_pairs is None else self.n_pairs

    @property
    def n_cells(self) -> int:
        sizes = (self.families, self.attacks, self.epsilons, self.algorithms)
        count = self.seeds
        for axis in sizes:
            count *= len(axis)
        return count


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list | range) or (hasattr(value, "tolist") and np.ndim(value) == 1):
        return tuple(map(_plain, value))
    if isinstance(value, Fraction | Decimal):
        return float(value)
    if not (hasattr(value, "item") and np.ndim(value) == 0):
        return value
    # Scalars of NumPy and JAX, and arrays without an axis.
    plain = value.item()
    return shortest_decimal(value) if isinstance(plain, float) else plain


def _several(name: str, given: Any):
    """A text would be taken letter by letter."""
    if not isinstance(given, tuple):
        shown = f"({given!r},)" if isinstance(given, str | float | int) else f"tuple({name})"
        raise ValueError(f"{name} is of the type {type(given).__name__}: give a tuple, such as {shown}.")


def _whole(name: str, given: Any):
    if not isinstance(given, int | np.integer) or isinstance(given, bool):
        raise ValueError(f"{name}={given!r}: give a whole number.")


def _distinct(name: str, given: Sequence[Any]):
    """A cell that stands twice would count twice in the medians."""
    for i, value in enumerate(given):
        if value in given[:i]:
            raise ValueError(f"{name}: {value!r} is given twice: name each once.")


def _one_of(name: str, given: Iterable[str], allowed: Iterable[str]):
    for value in given:
        if value not in allowed:
            raise ValueError(f"{name}: {value!r} is unknown; there are {', '.join(sorted(allowed))}.")
