"""How the pairs of a source are cut: blocks of one shape, and chunks of blocks, whose sums are added in order."""

from typing import NamedTuple

# A chunk has so many blocks at least, and so many pairs for each feature: a second moment is then an eighth of what is
# read for it, or less.
BLOCKS, PER_FEATURE = 16, 16


class Layout(NamedTuple):
    """`n` pairs of `n_features` in blocks of `rows`, the last one padded.

    Chunks, and the order in which sums are added, depend on these alone, not on who adds them.
    """

    n: int
    n_features: int
    rows: int

    @property
    def blocks(self) -> int:
        return -(-self.n // self.rows)

    @property
    def padded(self) -> int:
        """How many pairs there are once the last block is padded."""
        return self.blocks * self.rows

    @property
    def per_chunk(self) -> int:
        return max(BLOCKS, -(-PER_FEATURE * self.n_features // self.rows))

    @property
    def chunks(self) -> int:
        return -(-self.blocks // self.per_chunk)

    def place(self, first: int, end: int) -> slice:
        """The pairs of the chunks from `first` up to `end`."""
        size = self.per_chunk * self.rows
        return slice(first * size, min(end * size, self.padded))

    def ends_chunk(self, pair: int) -> bool:
        """Whether a chunk ends before this pair."""
        return pair % (self.per_chunk * self.rows) == 0 or pair == self.padded
