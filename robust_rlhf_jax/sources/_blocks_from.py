"""Blocks from somewhere in the middle of a source."""

from collections.abc import Iterable, Iterator

import numpy as np
from jaxtyping import Float

from ._recut import check_rows, recut
from .protocol import PairSource


def blocks_from(source: PairSource, begin: int, rows: int) -> Iterator[Float[np.ndarray, "m k"]]:
    """Differences [m, k] of pair `begin` and all that follow it, in blocks of `rows`.

    By the source's own method `blocks_from(begin, rows)` where it has one, as arrays, shards and Parquet files do:
    these read nothing of what comes before. Else the pairs before are read, and left out.

    **Raises:** ValueError for `rows` below 1 and for a negative `begin`.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.sources import ArraySource, blocks_from
    >>> source = ArraySource(np.arange(5.0)[:, None])
    >>> [block.ravel().tolist() for block in blocks_from(source, 2, 2)]
    [[2.0, 3.0], [4.0]]
    """
    check_rows(rows)
    check_begin(begin)
    if hasattr(source, "blocks_from"):
        return source.blocks_from(begin, rows)  # pyright: ignore[reportAttributeAccessIssue]
    return recut(_without(source.blocks(rows), begin), rows)


def check_begin(begin: int) -> None:
    """**Raises:** ValueError for a `begin` that is no whole number from 0."""
    if isinstance(begin, bool) or not isinstance(begin, int | np.integer) or begin < 0:
        raise ValueError(f"begin={begin!r}: give a whole number of at least 0.")


def _without(blocks: Iterable[np.ndarray], left_out: int) -> Iterator[np.ndarray]:
    for block in blocks:
        kept = block[left_out:]
        left_out = max(0, left_out - len(block))
        del block
        if len(kept):
            yield kept
        del kept
