"""What one pass over the pairs computes: a function of each block, and what becomes of that."""

import enum
import importlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from .layout import Layout


class Kind(enum.Enum):
    """What a function gives of a block: something per pair [..., m], sums over its pairs, rows [any, ...] that the
    caller collects, or something that is not asked for.
    """

    PAIR = enum.auto()
    SUM = enum.auto()
    ROWS = enum.auto()
    UNUSED = enum.auto()


class Pass(NamedTuple):
    """`of_block(block, *shared, *given)`, a function of a module, of every block; other processes can be sent it.

    | field | meaning |
    |---|---|
    | `doing` | what it does, in a few words |
    | `of_block` | gives as many things as `gives` has |
    | `gives` | what they are |
    | `shared` | trees of arrays, the same for every block |
    | `given` | arrays with one number per pair [..., padded], or those from pair `begin` on |
    """

    doing: str
    of_block: Callable[..., tuple[Any, ...]]
    gives: tuple[Kind, ...]
    shared: tuple[Any, ...] = ()
    given: tuple[np.ndarray, ...] = ()
    begin: int = 0

    def __reduce__(self):
        # A function under jit is pickled by its name.
        name = self.of_block.__module__, self.of_block.__qualname__
        return _of_named, (name, *self[:1], *self[2:])

    def within(self, place: slice) -> "Pass":
        """All that the pairs at `place` need."""
        return self._replace(given=self._given(place), begin=place.start)

    def of(self, place: slice, block: jax.Array) -> tuple[Any, ...]:
        return self.of_block(block, *self.shared, *self._given(place))

    def _given(self, place: slice) -> tuple[np.ndarray, ...]:
        return tuple(array[..., place.start - self.begin : place.stop - self.begin] for array in self.given)


def _of_named(name: tuple[str, str], doing: str, *rest: Any) -> Pass:
    return Pass(doing, getattr(importlib.import_module(name[0]), name[1]), *rest)


class Part(NamedTuple):
    """What a pass `found` of the pairs at `place`, in the order of `Pass.gives`; None for what is not asked for, and
    for sums up to the end of their chunk, where they are those of the whole chunk in float64.
    """

    place: slice
    found: tuple[Any, ...]


def parts_of(a_pass: Pass, blocks: Iterable[tuple[slice, jax.Array]], layout: Layout) -> Iterator[Part]:
    """A `Part` for each of the blocks, which begin where a chunk does."""
    sums: dict[int, np.ndarray] = {}
    for place, block in blocks:
        found: list[Any] = list(a_pass.of(place, block))
        del block
        ends = layout.ends_chunk(place.stop)
        for number, kind in enumerate(a_pass.gives):
            if kind is Kind.SUM:
                part = np.asarray(found[number])  # NumPy would let a device array add, in float32
                sums[number] = np.add(sums[number], part, out=sums[number]) if number in sums else _wide(part)
                found[number] = sums.pop(number) if ends else None
            else:
                found[number] = None if kind is Kind.UNUSED else np.asarray(found[number])
        yield Part(place, tuple(found))


def _wide(part: np.ndarray) -> np.ndarray:
    return part.astype(np.float64)
