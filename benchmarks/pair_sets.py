"""Pairs to fit rewards to, with clean pairs held out: real choices in folds of people, and worlds by seed."""

import csv
import gzip
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from robust_rlhf_jax import PreferenceData, load_rail_choices, sample_preferences
from robust_rlhf_jax.audit.folds import group_folds, training_rows
from robust_rlhf_jax.lab.diagnostics.calibration import calibration_gaps, expected_calibration_error
from robust_rlhf_jax.lab.sweeps.families import PRESETS
from robust_rlhf_jax.lab.worlds import delivery_grid
from robust_rlhf_jax.mdp import LinearMDP, normalised_gap, optimal_policy
from robust_rlhf_jax.preferences import comparison_numbers, rail_people, sample_segments
from robust_rlhf_jax.rewards import RewardFit, fit_data, fit_differences

OPTIONAL = ("electricity", "swissmetro")
# Every set of real choices: the bundled one, and those that may lie in `studies.SHARED`.
CHOICES = ("rail", *OPTIONAL, "cars_us", "taxes")
FOLDS = 5
# Worlds and data sets of seeds below are what the estimator was made with.
FIRST_SEED = 10
FRESH = 20_000
DELIVERY = PRESETS["delivery"]
FAMILIES = PRESETS["quick"].families


class World(NamedTuple):
    """The decision problem behind a trial, its training data, and θ★ in the units of the labels."""

    mdp: LinearMDP
    data: PreferenceData
    theta: Float[np.ndarray, " k"]


class Trial(NamedTuple):
    """What one fit sees, and the clean pairs that judge it.

    `options` [M, k]: what the differences `x` are made of; `people` [N]: numbers of the raters, None where each pair
    stands for itself; `touched` [N, G]: pairs by group, a feature that differs or a state that is visited.
    """

    x: Float[np.ndarray, "N k"]
    labels: Float[np.ndarray, " N"]
    people: Int[np.ndarray, " N"] | None
    test_x: Float[np.ndarray, "M k"]
    test_labels: Float[np.ndarray, " M"]
    options: Float[np.ndarray, "O k"]
    touched: Bool[np.ndarray, "N G"]
    world: World | None = None

    def fit(self, x, labels, epsilon: float) -> RewardFit:
        """The front door's core on these differences; ε = 0 is plain maximum likelihood."""
        people = None if self.people is None else jnp.asarray(self.people)
        same = comparison_numbers(np.asarray(x))
        x, labels, epsilon = (jnp.asarray(value, jnp.float32) for value in (x, labels, epsilon))
        return jax.block_until_ready(fit_differences(x, labels, epsilon, people, comparisons=same))

    def score(self, found: RewardFit | np.ndarray) -> "Score":
        """How the probabilities of a fit, or σ(θᵀx) of a θ, do on the clean pairs, and θ as a plan where there is a
        world.
        """
        theta = getattr(found, "theta", found)
        if isinstance(found, RewardFit):
            first = np.asarray(found.probability(jnp.asarray(self.test_x, jnp.float32)), float)
        else:
            first = 1 / (1 + np.exp(-np.clip(self.test_x @ np.asarray(theta, float), -30, 30)))
        chance = np.clip(np.where(self.test_labels > 0, first, 1 - first), 1e-12, 1.0)
        right = (chance > 0.5) + 0.5 * (chance == 0.5)
        value = np.nan if self.world is None else _return(self.world, jnp.asarray(theta, jnp.float32))
        return Score(
            float(np.mean(right)),
            float(-np.mean(np.log(chance))),
            value,
            *calibration_gaps(np.maximum(chance, 1 - chance), right),
        )

    def turned(self, how: str) -> "Trial":
        """The same pairs in another orientation: "random" as they are, "chosen first", "nine in ten" so."""
        if how == "random":
            return self
        turn = self.labels.copy()
        if how == "nine in ten":
            turn *= np.where(np.random.default_rng(0).random(len(turn)) < 0.9, 1.0, -1.0)
        return self._replace(x=self.x * turn[:, None], labels=self.labels * turn)


ORIENTATIONS = ("random", "chosen first", "nine in ten")


class Score(NamedTuple):
    """`value`: normalised return of the exact plan for θ, NaN without a world; then the `calibration_gaps`."""

    accuracy: float
    log_loss: float
    value: float
    gap0: float = 0.0
    gap1: float = 0.0
    gap2: float = 0.0
    gap3: float = 0.0
    gap4: float = 0.0
    gap5: float = 0.0
    gap6: float = 0.0
    gap7: float = 0.0
    gap8: float = 0.0
    gap9: float = 0.0

    @property
    def calibration(self) -> float:
        """The expected calibration error (Guo et al. 2017). Of mean scores it is that of the trials
        together: of one trial with hundreds of pairs, chance alone makes it .05.
        """
        return expected_calibration_error(self[3:])


def fit_world(data: PreferenceData, epsilon: float) -> RewardFit:
    """`fit_reward`, in arrays, of the data of a world: the table is asked first."""
    return jax.block_until_ready(fit_data(data, jnp.float32(epsilon)))


def _return(world, theta):
    policy, _ = optimal_policy(world.mdp, world.data.per_step(theta))
    return 1.0 - float(normalised_gap(world.mdp, policy))


def available(shared: Path) -> tuple[list[str], list[str]]:
    """(names of the sets at hand, a sentence on each that is not)."""
    missing = [name for name in OPTIONAL if not (shared / f"{name}.csv.gz").exists()]
    names = ["rail", *(n for n in OPTIONAL if n not in missing), "delivery", *FAMILIES]
    return names, [f"{name} is skipped: {shared / name}.csv.gz does not exist." for name in missing]


def trials(name: str, shared: Path, repeats: int, seeds: int) -> "list[Callable[[], Trial]]":
    """The trials of a set, built when called: `FOLDS` × `repeats` folds of real choices, or worlds by `seeds` keys."""
    if name in CHOICES:
        return list(_folds(real_choices(name, shared), repeats))
    build = _delivery if name == "delivery" else lambda seed: _family(name, seed)
    return [lambda seed=seed: build(seed) for seed in range(FIRST_SEED, FIRST_SEED + seeds)]


class RealChoices(NamedTuple):
    """Options [N, 2, k], labels and the number of who chose."""

    options: Float[np.ndarray, "N 2 k"]
    labels: Float[np.ndarray, " N"]
    people: Int[np.ndarray, " N"]


@cache
def real_choices(name, shared) -> RealChoices:
    if name == "rail":
        data = load_rail_choices()
        return RealChoices(
            np.asarray(data.features[:, :, 0], float), np.asarray(data.labels, float), rail_people()
        )
    with gzip.open(shared / f"{name}.csv.gz", "rt", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = [column.removeprefix("chosen_") for column in rows[0] if column.startswith("chosen_")]
    taken, left = (
        np.array([[float(r[k + n]) for n in names] for r in rows]) for k in ("chosen_", "rejected_")
    )
    labels = np.random.default_rng(1).choice([-1.0, 1.0], len(rows))
    first = (labels == 1)[:, None]
    options = np.stack([np.where(first, left, taken), np.where(first, taken, left)], axis=1)
    return RealChoices(options, labels, np.unique([r["rater"] for r in rows], return_inverse=True)[1])


def _folds(real: RealChoices, repeats: int) -> Iterator[Callable[[], Trial]]:
    x = real.options[:, 1] - real.options[:, 0]
    of_row = np.array([group_folds(np.random.default_rng(r), real.people, FOLDS) for r in range(repeats)])
    rows = training_rows(np.random.default_rng(0), of_row, FOLDS)

    def trial(repeat, fold):
        train, test = rows[repeat, fold], of_row[repeat] == fold
        people = np.unique(real.people[train], return_inverse=True)[1].astype(np.int32)
        options = real.options[train].reshape(-1, x.shape[1])
        return Trial(x[train], real.labels[train], people, x[test], real.labels[test], options, x[train] != 0)

    for repeat in range(repeats):
        for fold in range(FOLDS):
            yield lambda repeat=repeat, fold=fold: trial(repeat, fold)


def _delivery(seed: int) -> Trial:
    keys = jax.random.split(jax.random.key(seed), 3)
    mdp = delivery_grid(keys[0])
    how = {"length": DELIVERY.segment, "temperature": DELIVERY.temperature}
    data = sample_segments(keys[1], mdp, DELIVERY.n_pairs, **how)
    fresh = sample_segments(keys[2], mdp, FRESH, **how)
    return _trial(mdp, data, fresh, np.asarray(data.flat(mdp.theta), float) / DELIVERY.temperature)


def _family(name: str, seed: int) -> Trial:
    keys = jax.random.split(jax.random.key(seed), 3)
    mdp, behaviour = FAMILIES[name](keys[0])
    behaviours = (behaviour, behaviour)
    data = sample_preferences(keys[1], mdp, PRESETS["quick"].n_pairs, behaviour=behaviours)
    fresh = sample_preferences(keys[2], mdp, FRESH, behaviour=behaviours)
    return _trial(mdp, data, fresh, np.asarray(data.flat(mdp.theta), float))


def _trial(mdp, data, fresh, theta) -> Trial:
    x, test_x = (np.asarray(pairs.differences(), float) for pairs in (data, fresh))
    observed = np.asarray(data.observed_reward_features, float)
    shown = observed.sum(axis=2) if data.stationary else observed.reshape(len(x), 2, -1)
    visited = np.zeros((len(x), mdp.n_states), bool)
    states = np.asarray(data.states[..., :-1]).reshape(len(x), -1)
    visited[np.arange(len(x))[:, None], states] = True
    touched = np.concatenate([x != 0, visited], axis=1)
    labels, test_labels = (np.asarray(pairs.labels, float) for pairs in (data, fresh))
    world = World(mdp, data, theta)
    return Trial(x, labels, None, test_x, test_labels, shown.reshape(-1, x.shape[1]), touched, world)
