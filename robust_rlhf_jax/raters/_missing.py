"""Which of a caller's values say nothing: None, NaN, and pandas' NA and NaT."""

from typing import Any

import numpy as np

from robust_rlhf_jax.io.frames import unmasked
from robust_rlhf_jax.io.labels import is_missing

# pandas' own, told by their types: they answer neither that they are equal to themselves nor that they are not.
OF_PANDAS = ("NAType", "NaTType")


def listed(values: Any) -> list:
    """The values one by one, None where one is missing; in NumPy's array of a list NaN beside a word is a word.

    **Example:**

    >>> from robust_rlhf_jax.raters._missing import listed
    >>> listed(["a", float("nan"), None])
    ['a', None, None]
    """
    if not isinstance(values, list | tuple):
        array = np.atleast_1d(np.asarray(unmasked(values)))
        if array.dtype.kind in "mM":  # tolist() would turn NaT into a number
            gone, array = np.isnat(array), array.astype(object)
            array[gone] = None
        values = array.tolist()
    return [None if _is_nothing(value) else value for value in values]


def _is_nothing(value: Any) -> bool:
    if type(value).__name__ in OF_PANDAS or (isinstance(value, np.floating) and np.isnan(value)):
        return True
    return is_missing(value)
