"""Who labelled a pair that names no rater: a rater of its own, since two such pairs may be of different raters."""

import re
from typing import Any

import numpy as np
from jaxtyping import Bool

from .labels import is_missing

# The rater of a pair without a name is called this and its row.
NOBODY = "nobody, row "
# How tables write that a name is missing.
NO_NAMES = ("null", "\\n", "none", "nan", "n/a", "<na>")
# A number as tables of floats write it that have texts alone, such as CSV files with empty cells from pandas.
WHOLE = re.compile(r"\d+(?:\.0)?")
# How R writes it; in small letters it may be a name.
R_NO_NAME = "NA"


def each_named(values: Any) -> Any:
    """One name for each pair as an array that can be sorted; where it is missing, `NOBODY` and the row.

    Numbers stay numbers where none is missing, whole ones as whole numbers; names of several types become words.

    **Example:**

    >>> from robust_rlhf_jax.io.unnamed_raters import each_named
    >>> each_named(["Ann", None, "Ben"]).tolist()
    ['Ann', 'nobody, row 1', 'Ben']
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        # Numbers as floats would be other names.
        values = np.where(values.mask, np.array(None), values.data.astype(object))
    array = np.asarray(values)
    if array.ndim != 1 or (array.dtype.kind in "biuUS" and not _unnamed_words(array)):
        return array
    missing = [_is_missing(value) for value in array.tolist()]
    if not any(missing):
        return (
            _whole(array) if _can_be_sorted(array) else np.array([name_of(value) for value in array.tolist()])
        )
    return np.array(
        [
            f"{NOBODY}{row}" if gone else name_of(value)
            for row, (value, gone) in enumerate(zip(array.tolist(), missing, strict=True))
        ]
    )


def named_in(cells: list) -> np.ndarray:
    """`each_named` of a table's cells, numbers as words; where all are whole numbers, 12.0 is the 12 of other rows."""
    names = [None if is_missing(cell) else name_of(cell) for cell in cells]
    if all(WHOLE.fullmatch(name) for name in names if name is not None and not _is_missing(name)):
        names = [name and name.removesuffix(".0") for name in names]
    return each_named(names)


def ids_in(cells: list) -> np.ndarray:
    """The ids of pairs as words, "" where one is missing; `each_named` of them tells those without one apart.

    **Example:**

    >>> from robust_rlhf_jax.io.unnamed_raters import each_named, ids_in
    >>> ids = ids_in([7, None, "NULL"])
    >>> ids.tolist(), each_named(ids).tolist()
    (['7', '', ''], ['7', 'nobody, row 1', 'nobody, row 2'])
    """
    return np.array(["" if _is_missing(cell) else name_of(cell) for cell in cells])


def has_name(names: Any) -> Bool[np.ndarray, " N"]:
    """Where `each_named` was given a name."""
    return np.array([not str(name).startswith(NOBODY) for name in np.asarray(names).tolist()], bool)


def _unnamed_words(array: np.ndarray) -> bool:
    return array.dtype.kind == "U" and any(_is_missing(value) for value in np.unique(array).tolist())


def _is_missing(value: Any) -> bool:
    if is_missing(value):
        return True
    # pandas' NA and NaT say neither that they are nor that they are not themselves.
    said = str(value).strip()
    return said == R_NO_NAME or said.casefold() in (*NO_NAMES, "nat")


def _whole(array: np.ndarray) -> np.ndarray:
    """Floats that are whole numbers as those, so that 3.0 is called 3; anything else as it is."""
    if array.dtype.kind != "f" or not (np.abs(array) < 2**53).all():
        return array
    whole = array.astype(np.int64)
    return whole if (whole == array).all() else array


def _can_be_sorted(array: np.ndarray) -> bool:
    try:
        np.sort(array)
    except TypeError:
        return False
    return True


def name_of(value: Any) -> str:
    """The value as a word without spaces around it; a whole number without the decimals of a table of floats."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()
