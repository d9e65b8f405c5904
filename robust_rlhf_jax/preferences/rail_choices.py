"""Real choices between two rail journeys, bundled with the package."""

import csv
from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np
from jaxtyping import Int

from robust_rlhf_jax.io import Pairs

from .data import PreferenceData
from .options import preferences_from_options

RAIL_FEATURES = ("price", "time", "change", "comfort")


def load_rail_choices() -> PreferenceData:
    """2,929 choices of 235 Dutch travellers between journeys A and B (stated preferences, 1987).

    H = 1, p = 4. Trajectory 0 is journey A, trajectory 1 journey B; the label is +1 where B was chosen.
    Features are `RAIL_FEATURES`: price, travel time, number of changes, and comfort class (0 best, 2 worst),
    so less is better in every one. Each is shifted and scaled to mean 0 and standard deviation 1 over both
    options of all pairs: θ is per standard deviation. Norms exceed 1: that bound is for MDPs.

    Source: Ben-Akiva, Bolduc & Bradley (1993), "Estimation of travel choice models with randomly distributed
    values of time", Transportation Research Record 1413, 88–97 (data_files/README.md).

    **Example:**

    >>> from robust_rlhf_jax import load_rail_choices
    >>> load_rail_choices().differences().shape
    (2929, 4)
    """
    a, b, chose_b = _choices()
    return preferences_from_options(a, b, np.where(chose_b, 1.0, -1.0))


def rail_pairs() -> Pairs:
    """The choices of `load_rail_choices` as pairs, B first, with who chose.

    **Example:**

    >>> from robust_rlhf_jax.preferences import rail_pairs
    >>> pairs = rail_pairs()
    >>> pairs.n_pairs, pairs.names, len(set(pairs.raters))
    (2929, ('price', 'time', 'change', 'comfort'), 235)
    """
    a, b, chose_b = _choices()
    x = (b - a).astype(np.float32)
    labels = np.where(chose_b, 1.0, -1.0)
    return Pairs.of_differences(x, labels, names=RAIL_FEATURES, raters=rail_people(), path=Path("rail"))


def _choices():
    """(journeys A [N, 4], journeys B [N, 4], whether B was chosen [N])."""
    rows = _rows()
    options = np.array([[[float(row[f"{f}_{o}"]) for f in RAIL_FEATURES] for o in "ab"] for row in rows])
    options = (options - options.mean(axis=(0, 1))) / options.std(axis=(0, 1))
    return options[:, 0], options[:, 1], np.array([row["choice"] == "B" for row in rows])


def rail_people() -> Int[np.ndarray, " N"]:
    """Who made each choice (1…235), in the order of `load_rail_choices`: folds should not split a person.

    **Example:**

    >>> from robust_rlhf_jax.preferences import rail_people
    >>> people = rail_people()
    >>> people.shape, len(set(people.tolist()))
    ((2929,), 235)
    """
    return np.array([int(row["person"]) for row in _rows()])


@cache
def _rows():
    file = resources.files("robust_rlhf_jax.preferences") / "data_files" / "rail_choices.csv"
    return tuple(csv.DictReader(file.read_text("utf-8").splitlines()))
