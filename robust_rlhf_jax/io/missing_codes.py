"""Numbers and words that may stand for a missing value: -99 among ages, "NULL" among answers. They are told of, and
used as they are: what they mean is not known."""

from collections import Counter
from collections.abc import Iterable

import numpy as np
from jaxtyping import Float

from .bad_cells import shown
from .labels import number_in
from .pairs import Pairs
from .schemas import Mapped
from .schemas.base import structured
from .table import Table

# What statistics programs and surveys write where a number is missing.
SMALL = (-1.0, -2.0, -7.0, -8.0, -9.0)
BELOW = (-77.0, -88.0, -97.0, -98.0, -99.0, -777.0, -888.0, -999.0, -9999.0, -99999.0, -999999.0)
ABOVE = (88.0, 97.0, 98.0, 99.0, 888.0, 997.0, 998.0, 999.0, 9998.0, 9999.0, 99999.0, 999999.0)
# Cells of a code at least, and of other numbers; the share at most that is a code and no level of a design.
REPEATED, OTHERS, SHARE = 3, 17, 0.3
# Ranges of the other numbers between them and a code, which above them may be a price.
FAR, FAR_ABOVE = 2.0, 8.0
WORDS = {"null", "na", "n/a", "#n/a", "nan", "none", "<na>", "\\n", "undefined", "[deleted]", "[removed]"}


def of_missing(pairs: Pairs, file: Table, mapped: Mapped) -> list[str]:
    """A sentence for each code of a feature or a score, and one for words among answers."""
    notes = []
    if pairs.kind in ("numeric", "scores"):
        sides = [np.asarray(side) for side in (pairs.chosen, pairs.rejected)]
        for name, *values in zip(pairs.names, *(side.T for side in sides), strict=True):
            found = codes_among(np.concatenate(values))
            columns = _columns_of(mapped, pairs.kind, name, file) if found else []
            notes += [_sentence(code, name, columns, file) for code in found]
    if mapped.by in ("scores", "ranks"):
        for name in (name for name in mapped.used if name in file.columns and name not in _no_scores(mapped)):
            found = codes_among(np.asarray(_numbers(file.cells(name)), float))
            notes += [_sentence(code, name, [name], file) for code in found]
    return notes + _of_words(pairs)


def codes_among(values: Float[np.ndarray, " n"]) -> list[float]:
    """The codes that come again and again, and are far from all other values."""
    # Few of millions of numbers are whole and may be codes.
    outside = values[(values < 0) | (values >= min(ABOVE))]
    outside = outside[outside == np.floor(outside)]
    counts = Counter(outside[np.isin(outside, (*SMALL, *BELOW, *ABOVE))].tolist())
    if not counts:
        return []
    kinds = ((SMALL, _are_small), (BELOW, _are_below), (ABOVE, _are_above))
    found = []
    for codes, are_codes in kinds:
        rest = values[~np.isin(values, (*SMALL, *BELOW) if codes is not ABOVE else ABOVE)]
        many = [code for code in codes if counts[code] >= REPEATED]
        few = sum(counts[code] for code in many) <= SHARE * len(values)
        if len(rest) >= OTHERS and few:
            found += [code for code in many if are_codes(code, rest)]
    return found


def _are_small(code: float, rest: np.ndarray) -> bool:
    """Whether all others are above 0 and several: not 0 and 1 of a design with -1."""
    return bool(rest.min() > 0 and len(np.unique(rest)) > 2)


def _are_below(code: float, rest: np.ndarray) -> bool:
    return bool(rest.min() >= 0 or rest.min() - code > FAR * np.ptp(rest))


def _are_above(code: float, rest: np.ndarray) -> bool:
    return bool(np.ptp(rest) > 0 and code - rest.max() > FAR_ABOVE * np.ptp(rest))


def _columns_of(mapped: Mapped, kind: str, name: str, file: Table) -> list[str]:
    """The file's columns that a feature comes from."""
    found: dict[str, None] = {}
    for column in mapped.roles.numbers.get(kind, {}).get(name, ()):
        of_file, _ = mapped.cells_of.get(column, (column, False))
        found |= dict.fromkeys((of_file,) if isinstance(of_file, str) else of_file)
    return [column for column in found if column in file.columns]


def _no_scores(mapped: Mapped) -> set[str | None]:
    return {*mapped.roles.said.values(), mapped.roles.rater, mapped.roles.weight, mapped.roles.id}


def _numbers(cells: Iterable) -> list[float]:
    """The numbers of a column, also in lists."""
    found = []
    for cell in map(structured, cells):
        entries = cell if isinstance(cell, list) else [cell]
        found += [number for entry in entries if (number := number_in(entry)) is not None]
    return found


def _sentence(code: float, name: str, columns: list[str], file: Table) -> str:
    count = sum(_numbers(file.cells(column)).count(code) for column in columns)
    return (
        f"{count:,} cells of {name} are {code:g}, far from all others: if that is a code for a missing value, empty "
        "those cells, and leave their rows out by --skip-bad."
    )


def _of_words(pairs: Pairs) -> list[str]:
    texts = pairs.texts
    if texts is None:
        return []
    said = Counter(
        min(both)
        for sides in zip(texts.chosen, texts.rejected, strict=True)
        if (both := [side.strip() for side in sides if side.strip().casefold() in WORDS])
    )
    if not said:
        return []
    count, (one, _) = sum(said.values()), said.most_common(1)[0]
    which = "1 pair has an answer that is" if count == 1 else f"{count:,} pairs have an answer that is"
    others = " or the like" if len(said) > 1 else ""
    return [
        f"{which} {shown(one)}{others}: if that means that there was none, empty those cells, and leave their rows out "
        "by --skip-bad."
    ]
