"""Passes over a source in blocks of one shape, by an engine, with what was read reported."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from robust_rlhf_jax.sources import PairSource

from .config import Tell
from .engine import Engine, ThisProcess
from .layout import Layout
from .one_pass import Kind, Part, Pass

# Float32 numbers in a block: 4 MB. Larger blocks leave the processor's cache, and their memory comes anew from the
# system each time: on 2 cores rows are then read at a third of the speed.
NUMBERS = 1 << 20
FEWEST_ROWS = 64


class Passes:
    """Passes over the pairs of a source in blocks of `rows`, the last one padded with zeros.

    `n`: pairs; `padded`: the length of whatever there is per pair, a multiple of `rows`; `made`: passes so far.
    """

    def __init__(self, source: PairSource, tell: Tell | None = None, engine: Engine | None = None):
        self.source, self.tell = source, tell
        self.n, self.n_features = source.n_pairs, source.n_features
        devices = len(jax.local_devices())
        self.rows = devices * max(FEWEST_ROWS, NUMBERS // max(self.n_features, 1))
        self.layout = Layout(self.n, self.n_features, self.rows)
        self.padded = self.layout.padded
        self.compute = (engine or ThisProcess()).of(source, self.layout)
        self.made = 0

    def run(self, a_pass: Pass, each: Callable[[slice, np.ndarray], None] | None = None) -> tuple[Any, ...]:
        """One pass: what it gives, per pair [..., padded] or added up over all pairs in float64.

        **Arguments:** `each`: is called with the places of some pairs, in their order, and the rows that the pass gives
        of them; these are not kept.

        **Raises:** ValueError where the source does not give the pairs that it said, and as the engine.
        """
        whole: list[Any] = [None] * len(a_pass.gives)
        for part in self._parts(a_pass):
            for number, (kind, found) in enumerate(zip(a_pass.gives, part.found, strict=True)):
                if kind is Kind.ROWS and each is not None:
                    each(part.place, found)
                whole[number] = self._with(whole[number], kind, part.place, found)
        return tuple(whole)

    def _with(self, whole: Any, kind: Kind, place: slice, found: Any) -> Any:
        """What a pass has given so far, with what it `found` of the pairs at `place`."""
        if kind is Kind.PAIR:
            whole = self.room(*found.shape[:-1]) if whole is None else whole
            whole[..., place] = found
        elif kind is Kind.SUM and found is not None:
            whole = found if whole is None else whole + found
        return whole

    def _parts(self, a_pass: Pass) -> Iterator[Part]:
        for part in self.compute(a_pass):
            yield part
            if self.tell is not None:
                self.tell(f"pass {self.made + 1}: {a_pass.doing}", min(part.place.stop, self.n), self.n)
        self.made += 1

    def room(self, *leading: int) -> np.ndarray:
        """Zeros for something per pair, [..., padded]."""
        return np.zeros((*leading, self.padded), np.float32)
