"""Frames and columns with an index that come together: their rows must be in one order."""

from collections import Counter
from typing import Any


def check_rows(**given: Any) -> None:
    """Check that the frames and columns among `given` have their rows in one order; others, and an index of other
    entries, count by their place.

    **Raises:** ValueError for rows that are called as those of the first of them and stand in another order.
    """
    indexed = [(name, values.index) for name, values in given.items() if has_index(values)]
    for name, index in indexed[1:]:
        first, wanted = indexed[0]
        if len(index) == len(wanted) and not index.equals(wanted) and _same_entries(index, wanted):
            raise ValueError(
                f"{first} and {name} have the same index in another order: put their rows in one order, or take "
                "reset_index(drop=True) of both where rows count by their place."
            )


def has_index(values: Any) -> bool:
    """Whether it has the index of pandas and the like; the `index` of a list is a method."""
    return hasattr(getattr(values, "index", None), "equals")


def _same_entries(one: Any, other: Any) -> bool:
    """Whether two indices of one length hold the same, in whatever order."""
    try:
        return one.sort_values().equals(other.sort_values())
    except TypeError:  # entries of several types have no order
        return Counter(one) == Counter(other)
