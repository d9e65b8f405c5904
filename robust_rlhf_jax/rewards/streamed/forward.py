"""A source that is read once, from its beginning to its end, some blocks at a time."""

import itertools
from collections.abc import Iterator

import numpy as np

from robust_rlhf_jax.sources import PairSource


class Forward:
    """`source` for one who reads blocks of `rows` from places that only grow: it is begun once."""

    def __init__(self, source: PairSource, rows: int):
        self.n_pairs, self.n_features, self.groups = source.n_pairs, source.n_features, source.groups
        self.fingerprint = source.fingerprint
        self._given, self._next, self._rows = source.blocks(rows), 0, rows

    def blocks(self, rows: int) -> Iterator[np.ndarray]:
        return self.blocks_from(0, rows)

    def blocks_from(self, begin: int, rows: int) -> Iterator[np.ndarray]:
        """**Raises:** ValueError for other blocks than are read, or a place before the last one."""
        if rows != self._rows or begin < self._next:
            raise ValueError(
                f"blocks of {self._rows} from pair {self._next} on are left, not of {rows} from {begin}."
            )
        for _ in itertools.islice(self._given, (begin - self._next) // rows):
            self._next += rows
        for block in self._given:
            self._next += rows
            yield block
            del block
