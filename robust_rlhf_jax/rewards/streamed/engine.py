"""Who computes a pass: this process alone, or others."""

from collections.abc import Iterator
from typing import Protocol

from robust_rlhf_jax.sources import PairSource

from .layout import Layout
from .one_pass import Part, Pass, parts_of
from .placed_blocks import placed_blocks


class Engine(Protocol):
    """Whoever computes passes; the numbers are the same whoever does."""

    def parts(self, source: PairSource, layout: Layout, a_pass: Pass) -> Iterator[Part]:
        """What `a_pass` finds of all pairs, in their order, and of any number of blocks at a time."""
        ...


class ThisProcess:
    """The devices of this process."""

    def parts(self, source: PairSource, layout: Layout, a_pass: Pass) -> Iterator[Part]:
        everywhere = layout.place(0, layout.chunks)
        return parts_of(a_pass, placed_blocks(source, layout, everywhere), layout)
