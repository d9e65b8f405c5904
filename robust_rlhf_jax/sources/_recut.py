"""Blocks of any length as blocks of one length."""

from collections.abc import Generator, Iterable, Iterator

import numpy as np
from jaxtyping import Shaped


def recut(blocks: Iterable[Shaped[np.ndarray, "_ k"]], rows: int) -> Iterator[Shaped[np.ndarray, "m k"]]:
    """The rows of all `blocks` in blocks of `rows`, the last one of what is left.

    A block of `rows` is passed on, a longer one in views. Nothing holds a block while the next one is made.

    **Raises:** ValueError, at the call, for `rows` below 1.
    """
    check_rows(rows)
    return _closing(blocks, _recut(blocks, rows))


def check_rows(rows: int, name: str = "rows") -> None:
    """**Raises:** ValueError for `rows`, of that `name`, that are no whole number above 0."""
    if isinstance(rows, bool) or not isinstance(rows, int | np.integer) or rows < 1:
        raise ValueError(f"{name}={rows!r}: give a whole number of at least 1.")


def cuts(begin: int, n: int, rows: int) -> Iterator[slice]:
    """Slices of a stretch of n rows, the first of which is row `begin` of all, that end where blocks of `rows` do."""
    at = 0
    while at < n:
        end = min(n, at + rows - (begin + at) % rows)
        yield slice(at, end)
        at = end


def cuts_from(begin: int, at: int, n: int, rows: int) -> Iterator[slice]:
    """Slices of a stretch of n rows, the first of which is row `at` of all, that leave out what comes before row
    `begin` and end where blocks of `rows` from that one on do.
    """
    gone = min(max(begin - at, 0), n)
    return (slice(gone + cut.start, gone + cut.stop) for cut in cuts(at + gone - begin, n - gone, rows))


def _closing(blocks: Iterable[np.ndarray], cut: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
    """What `cut` yields; left early, the `blocks` behind it are closed at once."""
    try:
        yield from cut
    finally:
        if isinstance(blocks, Generator):
            blocks.close()


def _recut(blocks: Iterable[np.ndarray], rows: int) -> Iterator[np.ndarray]:
    begin, parts = 0, []
    for block in blocks:
        for cut in cuts(begin, len(block), rows):
            full = (begin + cut.stop) % rows == 0
            # Rows that wait for more are copied: a view would keep its whole block in memory.
            parts.append(block[cut] if full else block[cut].copy())
            if full:
                yield _joined(parts)
        begin += len(block)
        del block
    if parts:
        yield _joined(parts)


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    """One array of all `parts`, which are taken out of the list."""
    whole = parts[0] if len(parts) == 1 else np.concatenate(parts)
    parts.clear()
    return whole
