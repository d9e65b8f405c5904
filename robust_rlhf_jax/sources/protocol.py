"""What every source of pairs offers: blocks of differences, always the same, and how many there are."""

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Shaped

from ._counted import counted


@runtime_checkable
class PairSource(Protocol):
    """Pairs that are read in blocks, so that they need not fit in memory.

    Blocks hold differences, the preferred option's features less the other's. Half, single and double precision
    are passed on as stored; where chosen and rejected options are stored apart, they are subtracted in float32, or in
    float64 where one is stored so. Values are not checked: a block may hold NaN.

    A source that can be read from the middle may offer `blocks_from(begin, rows)` as well: of many machines each then
    reads its own share alone. Sources that several machines read are pickled. One that reads files may offer
    `place_of(pair)`, the row and the file, which messages then name.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.sources import ArraySource, PairSource
    >>> isinstance(ArraySource(np.ones((3, 2))), PairSource), isinstance(np.ones((3, 2)), PairSource)
    (True, False)
    """

    @property
    def n_pairs(self) -> int:
        """N."""
        ...

    @property
    def n_features(self) -> int:
        """k."""
        ...

    @property
    def groups(self) -> Shaped[np.ndarray, " N"] | None:
        """Who labelled each pair, or which pairs are dependent, as any values; None if unknown."""
        ...

    def blocks(self, rows: int) -> Iterator[Float[np.ndarray, "m k"]]:
        """All differences in blocks of `rows`, the last one of what is left; the same at every call."""
        ...

    def fingerprint(self) -> str:
        """A short hash of names, sizes, shapes, types and a sample of the contents, to tell another source."""
        ...


def checked_blocks(source: PairSource, rows: int) -> Iterator[Float[np.ndarray, "m k"]]:
    """`source.blocks(rows)`, as many pairs and features as the source says it has.

    **Raises:** ValueError, while reading, for others.
    """

    def wrong(found: int) -> ValueError:
        more = "at least " if found > source.n_pairs else ""
        return ValueError(
            f"the source has {source.n_pairs:,} pairs and gave {more}{found:,}: it must give the same every time."
        )

    return counted(_of_features(source, rows), source.n_pairs, wrong)


def _of_features(source: PairSource, rows: int) -> Iterator[Float[np.ndarray, "m k"]]:
    for block in source.blocks(rows):
        if block.ndim != 2 or block.shape[1] != source.n_features:
            raise ValueError(
                f"the source has {source.n_features} features and gave a block of shape {block.shape}."
            )
        yield block
        del block


def place_in_words(source: PairSource, pair: int) -> str:
    """Where a pair stands in the files of its source, to end a sentence on it; "" of a source that does not say."""
    place = getattr(source, "place_of", None)
    return "" if place is None else f"; pair {pair:,} is {place(pair)}"
