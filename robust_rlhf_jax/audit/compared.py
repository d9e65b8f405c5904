"""What is equal where fields are arrays, of which `==` gives an array."""

import dataclasses
from typing import Any, ClassVar

import jax
import numpy as np


class ComparedByFields:
    """Base of dataclasses with `eq=False`: equal are two of one class whose fields are, but for `compare=False`."""

    # As arrays, they have no hash.
    __hash__: ClassVar[None]  # pyright: ignore[reportIncompatibleMethodOverride]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        names = [field.name for field in dataclasses.fields(self) if field.compare]  # pyright: ignore[reportArgumentType]
        return all(same(getattr(self, name), getattr(other, name)) for name in names)


def same(one: Any, other: Any) -> bool:
    """Whether two values, pytrees among them, are equal entry by entry; NaN, where nothing is known, equals NaN.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.audit.compared import same
    >>> same((np.arange(2), "x"), (np.arange(2), "x")), same(np.arange(2), np.arange(3))
    (True, False)
    """
    (leaves, structure), (others, another) = jax.tree.flatten(one), jax.tree.flatten(other)
    return structure == another and all(map(_same_leaf, leaves, others))


def _same_leaf(one: Any, other: Any) -> bool:
    if all(np.asarray(value).dtype.kind == "f" for value in (one, other)):
        return np.array_equal(one, other, equal_nan=True)
    return np.array_equal(one, other) if hasattr(one, "shape") else bool(one == other)
