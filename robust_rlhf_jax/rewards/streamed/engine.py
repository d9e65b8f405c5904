"""Who computes a pass: this process alone, or others."""

import abc
from collections.abc import Callable, Iterator
from typing import TypeVar

from robust_rlhf_jax.sources import PairSource

from .layout import Layout
from .one_pass import Part, Pass, parts_of
from .placed_blocks import placed_blocks

# Parts of all pairs, in their order, and of any number of blocks or chunks at a time.
Compute = Callable[[Pass], Iterator[Part]]
T = TypeVar("T")


class Engine(abc.ABC):
    """What computes passes. All engines give the same numbers."""

    @abc.abstractmethod
    def of(self, source: PairSource, layout: Layout) -> Compute:
        """What computes passes over `source`."""

    def led(self, source: PairSource, fit: Callable[[], T]) -> T:
        """What `fit` gives, which has passes over `source` computed."""
        return fit()


class ThisProcess(Engine):
    """The devices of this process."""

    def of(self, source: PairSource, layout: Layout) -> Compute:
        everywhere = layout.place(0, layout.chunks)
        return lambda a_pass: parts_of(a_pass, placed_blocks(source, layout, everywhere), layout)
