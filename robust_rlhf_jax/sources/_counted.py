"""Blocks of as many rows as were promised."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from jaxtyping import Shaped


def counted(
    blocks: Iterable[Shaped[np.ndarray, "_ k"]], n: int, wrong: Callable[[int], ValueError]
) -> Iterator[Shaped[np.ndarray, "_ k"]]:
    """The `blocks`, which have `n` rows in all. Nothing holds a block while the next one is made.

    **Raises:** `wrong(found)`, while reading, where they have another number; of too many rows, those so far.
    """
    found = 0
    for block in blocks:
        found += len(block)
        if found > n:
            break
        yield block
        del block
    if found != n:
        raise wrong(found)
