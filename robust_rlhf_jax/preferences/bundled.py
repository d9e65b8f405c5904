"""The data sets that come with the package, by name: what `robust-rlhf audit NAME` reads."""

from collections.abc import Callable
from typing import NamedTuple

from jaxtyping import Int
from numpy import ndarray

from .data import PreferenceData
from .rail_choices import RAIL_FEATURES, load_rail_choices, rail_people


class BundledSet(NamedTuple):
    """`load()` gives the pairs, `people()` who chose, `features` the names of the columns of x."""

    load: Callable[[], PreferenceData]
    people: Callable[[], Int[ndarray, " N"]]
    features: tuple[str, ...]


BUNDLED = {"rail": BundledSet(load_rail_choices, rail_people, RAIL_FEATURES)}
