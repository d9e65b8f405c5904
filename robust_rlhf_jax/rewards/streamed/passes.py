"""Passes over a source in blocks of one shape, read ahead, with what was read reported."""

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from robust_rlhf_jax.sources import PairSource, read_ahead

from .config import Tell

# Float32 numbers in a block: 4 MB. Larger blocks leave the processor's cache, and their memory comes anew from the
# system each time: on 2 cores rows are then read at a third of the speed.
NUMBERS = 1 << 20
FEWEST_ROWS = 64


class Passes:
    """Blocks of `rows` pairs of a source as arrays on all devices of this process, the last one padded with zeros.

    Each device has as many rows of every block, and sums over rows are the same on all. `n`: pairs; `padded`: the
    length of whatever there is per pair, a multiple of `rows`; `made`: passes so far.
    """

    def __init__(self, source: PairSource, tell: Tell | None = None):
        self.source, self.tell = source, tell
        self.n, self.n_features = source.n_pairs, source.n_features
        devices = jax.local_devices()
        mesh = jax.make_mesh((len(devices),), ("pairs",), (AxisType.Auto,), devices=devices)
        self.by_rows = NamedSharding(mesh, PartitionSpec("pairs"))
        self.rows = len(devices) * max(FEWEST_ROWS, NUMBERS // max(self.n_features, 1))
        self.padded = -(-self.n // self.rows) * self.rows
        self.made = 0

    def blocks(self, doing: str) -> Iterator[tuple[slice, jax.Array]]:
        """(the places of its rows among all, the block) in the order of the source, as stored.

        **Raises:** ValueError where the source does not give the pairs that it said.
        """
        done = 0
        for block in read_ahead(map(self._on_device, self.source.blocks(self.rows))):
            if done >= self.padded:
                break
            yield slice(done, done + self.rows), block
            done += self.rows
            if self.tell is not None:
                self.tell(f"pass {self.made + 1}: {doing}", min(done, self.n), self.n)
        if done != self.padded:
            raise ValueError(
                f"the source has {self.n:,} pairs and gave {done:,}: it must give the same every time."
            )
        self.made += 1

    def _on_device(self, block: np.ndarray) -> jax.Array:
        if block.ndim != 2 or block.shape[1] != self.n_features:
            raise ValueError(
                f"the source has {self.n_features} features and gave a block of shape {block.shape}."
            )
        if len(block) < self.rows:
            block = np.concatenate([block, np.zeros((self.rows - len(block), self.n_features), block.dtype)])
        return jax.device_put(block, self.by_rows)

    def room(self, *leading: int, dtype: Any = np.float32) -> np.ndarray:
        """Zeros for something per pair, [..., padded]."""
        return np.zeros((*leading, self.padded), dtype)
