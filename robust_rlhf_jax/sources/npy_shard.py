"""Rows of one `.npy` file [N, k], in memory for as long as they are used and no longer."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped

from robust_rlhf_jax.io.npy_arrays import mapped

from .floats import block_type, check_shape


class NpyShard(NamedTuple):
    """A file that was looked at: its path, its shape, and in what type its numbers come."""

    path: Path
    shape: tuple[int, int]
    dtype: np.dtype

    def anywhere(self) -> "NpyShard":
        """The same from any working folder."""
        return self._replace(path=self.path.absolute())

    def rows(self, cut: slice) -> Shaped[np.ndarray, "m k"]:
        """A view of the file, mapped anew: the pages that were read are freed with it.

        **Raises:** ValueError for a file that has changed.
        """
        values = mapped(self.path)
        if values.shape != self.shape or block_type(values.dtype, str(self.path)) != self.dtype:
            raise ValueError(f"{self.path} has changed since it was opened: open it again.")
        return np.asarray(values)[cut]


def npy_shard(path: Path) -> NpyShard:
    """**Raises:** ValueError for a file that is no `.npy` file, or holds anything but numbers [N, k]."""
    values = mapped(path)
    dtype = block_type(values.dtype, str(path))
    check_shape(values.shape, str(path))
    return NpyShard(path, (values.shape[0], values.shape[1]), dtype)


def npy_shards(paths: list[Path]) -> list[NpyShard]:
    """Shards of one array.

    **Raises:** ValueError where they differ in their features or their type, and as `npy_shard`.
    """
    shards = [npy_shard(path) for path in paths]
    first = shards[0]
    for shard in shards:
        if (shard.shape[1], shard.dtype) != (first.shape[1], first.dtype):
            raise ValueError(
                f"{shard.path} has {shard.shape[1]} features in {shard.dtype}, {first.path.name} {first.shape[1]} in "
                f"{first.dtype}: give shards of one kind."
            )
    return shards
