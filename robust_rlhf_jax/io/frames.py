"""Data frames as the two options of `Pairs`: their columns name the features, and are put in one order."""

from os.path import commonprefix
from typing import Any


def aligned_frames(chosen: Any, rejected: Any) -> tuple[Any, tuple[str, ...]]:
    """The second frame with its columns in the order of the first, and the names of the features.

    Columns have the same names in both frames, or one prefix or suffix in each (`chosen_price`, `rejected_price`).
    Names are () where the two are no data frames, nobody named the columns, or the frames share no name: columns count
    by their place then.

    **Raises:** ValueError where the frames share some names and not all, one frame has a name twice, or their rows have
    the same index in another order.
    """
    _check_rows(chosen, rejected)
    if not (is_frame(chosen) and is_frame(rejected)) or not any(map(column_names, (chosen, rejected))):
        return rejected, ()
    sides = [list(map(str, side.columns)) for side in (chosen, rejected)]
    for side, names in zip(("chosen", "rejected"), sides, strict=True):
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"{side} has the column {twice[0]!r} twice: give each feature one column.")
    for rename in (list, _without_prefix, _without_suffix):
        first, second = map(rename, sides)
        if set(first) == set(second):
            place = {name: i for i, name in enumerate(second)}
            return rejected[[rejected.columns[place[name]] for name in first]], tuple(first)
    if set(sides[0]) & set(sides[1]):
        raise ValueError(
            f"The frames have other columns: {_only('chosen', *sides)}; {_only('rejected', *reversed(sides))}. "
            "Give both options the same features."
        )
    return rejected, ()


def _check_rows(chosen: Any, rejected: Any) -> None:
    """**Raises:** ValueError for rows that are called the same and stand in another order."""
    first, second = (getattr(side, "index", None) for side in (chosen, rejected))
    if first is None or second is None or not (hasattr(first, "equals") and hasattr(second, "equals")):
        return
    if first.equals(second):
        return
    if len(first) == len(second) and first.sort_values().equals(second.sort_values()):
        raise ValueError(
            "chosen and rejected have the same index in another order: put their rows in one order, or take "
            "reset_index(drop=True) of both where rows count by their place."
        )


def is_frame(values: Any) -> bool:
    """Of pandas, Polars and the like; the columns of an Arrow table are no names."""
    return hasattr(values, "columns") and hasattr(values, "to_numpy")


def column_names(values: Any) -> tuple[str, ...]:
    """The names of a data frame's columns; () of anything else, and where nobody named them."""
    names = tuple(map(str, values.columns)) if is_frame(values) else ()
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
