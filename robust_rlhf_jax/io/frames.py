"""Data frames and Arrow tables of features: their columns, put in one order, name them."""

from collections.abc import Sequence
from os.path import commonprefix
from typing import Any

import numpy as np

from robust_rlhf_jax.row_order import has_index


def aligned_frames(
    chosen: Any, rejected: Any, called: tuple[str, str] = ("chosen", "rejected")
) -> tuple[Any, tuple[str, ...]]:
    """The second frame with its columns in the order of the first, and the names of the features; what messages call
    the two.

    Columns have the same names in both frames, or one prefix or suffix in each (`chosen_price`, `rejected_price`).
    Names are () where the two are no data frames, nobody named the columns, or the frames share no name: columns count
    by their place then.

    **Raises:** ValueError where the frames share some names and not all, or one frame has a name twice.
    """
    if not all(map(_has_columns, (chosen, rejected))) or not any(map(column_names, (chosen, rejected))):
        return rejected, ()
    sides = [list(_columns(side)) for side in (chosen, rejected)]
    for side, names in zip(called, sides, strict=True):
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"{side} has the column {twice[0]!r} twice: give each feature one column.")
    for rename in (list, _without_prefix, _without_suffix):
        first, second = map(rename, sides)
        if set(first) == set(second):
            place = {name: i for i, name in enumerate(second)}
            return _with_columns(rejected, [place[name] for name in first]), tuple(first)
    if set(sides[0]) & set(sides[1]):
        raise ValueError(
            f"The frames have other columns: {_only(called[0], *sides)}; {_only(called[1], *reversed(sides))}. "
            "Give both options the same features."
        )
    return rejected, ()


def usual_names(p: int) -> tuple[str, ...]:
    """The default names of p features."""
    return tuple(f"f{i}" for i in range(p))


def in_order(features: Any, names: Sequence[str], k: int) -> Any:
    """The columns of a data frame, or the entries of one row of it, that are called as the `names` of the k features,
    in that order, with one prefix or suffix if need be; a list of those one by one; what is neither, or has columns
    that nobody named, as it is.

    Where `names` is (), columns count by their place, unless they are f0, f1, … or numbers from 0 in another order.

    **Raises:** ValueError for a frame or a row that lacks one of the features.
    """
    if isinstance(features, list | tuple) and any(_has_columns(one) or has_index(one) for one in features):
        return [in_order(one, names, k) for one in features]
    frame: Any = features
    row = getattr(features, "ndim", 0) == 1 and has_index(features)
    given = _unless_numbered(tuple(map(str, frame.index))) if row else column_names(features)
    if not given:
        return unmasked(features)
    counted = (usual_names(k), tuple(map(str, range(k))))
    names = names or next((usual for usual in counted if sorted(usual) == sorted(given)), ())
    if not names:
        return features
    for rename in (list, _without_prefix, _without_suffix):
        place = {name: i for i, name in enumerate(rename(list(given)))}
        if all(name in place for name in names):
            places = [place[name] for name in names]
            return frame.iloc[places] if row else _with_columns(frame, places)
    missing = next(name for name in names if name not in given)
    what, part = ("row", "entry") if row else ("data frame", "column")
    raise ValueError(
        f"the {what} has no {part} {missing!r}: give {'an' if row else 'a'} {part} for each of the {k} features of "
        f"the fit, or to_numpy() of the {what} where they count by their place."
    )


def unmasked(values: Any) -> Any:
    """Where an array of NumPy is masked, NaN, or None among words; anything else as it is. Else what the mask hides
    would count.
    """
    if not isinstance(values, np.ma.MaskedArray):
        return values
    missing: Any = np.nan if values.dtype.kind in "biuf" else None
    hidden = np.ma.getmaskarray(values)
    return np.where(hidden, missing, values.data) if hidden.any() else values.data


def is_frame(values: Any) -> bool:
    """Whether it is a frame of pandas, Polars and the like; the columns of an Arrow table are no names."""
    return hasattr(values, "columns") and hasattr(values, "to_numpy")


def is_arrow(values: Any) -> bool:
    """Whether it is a table, a column or the like of pyarrow, which NumPy takes as it is."""
    return hasattr(values, "to_pylist") and hasattr(values, "__array__")


def column_names(values: Any) -> tuple[str, ...]:
    """The names of a data frame's or an Arrow table's columns; () of anything else, and where nobody named them."""
    return _unless_numbered(_columns(values)) if _has_columns(values) else ()


def _has_columns(values: Any) -> bool:
    return is_frame(values) or (is_arrow(values) and hasattr(values, "column_names"))


def _columns(frame: Any) -> tuple[str, ...]:
    return tuple(map(str, frame.column_names if is_arrow(frame) else frame.columns))


def _with_columns(frame: Any, places: list[int]) -> Any:
    """The columns at these places, in this order."""
    return frame.select(places) if is_arrow(frame) else frame[[frame.columns[i] for i in places]]


def _unless_numbered(names: tuple[str, ...]) -> tuple[str, ...]:
    return () if names == tuple(map(str, range(len(names)))) else names


def _without_prefix(names: list[str]) -> list[str]:
    """Names less what all of them begin with, up to the last `_`, `.` or space of that."""
    shared = commonprefix(names)  # noqa: RUF071 (characters are meant)
    length = 1 + max(shared.rfind(mark) for mark in "_. ")
    return [name[length:] for name in names]


def _without_suffix(names: list[str]) -> list[str]:
    return [name[::-1] for name in _without_prefix([name[::-1] for name in names])]


def _only(side: str, names: list[str], others: list[str]) -> str:
    mine = [name for name in names if name not in others]
    return f"{', '.join(map(repr, mine)) or 'none'} only in {side}"
