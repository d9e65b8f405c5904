"""The blocks of a source as arrays on all devices of this process, the next one read ahead."""

import functools
import itertools
from collections.abc import Iterator

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from robust_rlhf_jax.sources import PairSource, blocks_from, read_ahead

from .layout import Layout


def placed_blocks(source: PairSource, layout: Layout, place: slice) -> Iterator[tuple[slice, jax.Array]]:
    """(the places of its rows among all, the block) of the pairs at `place`, in order and as stored. Each device has as
    many rows of every block.

    **Raises:** ValueError where the source does not give the pairs that it said.
    """
    done, count = place.start, (place.stop - place.start) // layout.rows
    given = source.blocks(layout.rows) if place.start == 0 else blocks_from(source, place.start, layout.rows)
    if (
        place.stop < layout.padded
    ):  # at the end one block more is asked for: a source may notice that it has more
        given = itertools.islice(given, count)
    on_devices = functools.partial(_on_devices, layout, by_rows())
    for block in read_ahead(map(on_devices, itertools.count(place.start, layout.rows), given)):
        yield slice(done, done + layout.rows), block
        done += layout.rows
    if done != place.stop:
        raise _changed(layout, f"{'at most ' if done == place.start else ''}{done:,}")


def by_rows() -> NamedSharding:
    devices = jax.local_devices()
    mesh = jax.make_mesh((len(devices),), ("pairs",), (AxisType.Auto,), devices=devices)
    return NamedSharding(mesh, PartitionSpec("pairs"))


def _on_devices(layout: Layout, sharding: NamedSharding, begin: int, block: np.ndarray) -> jax.Array:
    if block.ndim != 2 or block.shape[1] != layout.n_features:
        raise ValueError(
            f"the source has {layout.n_features} features and gave a block of shape {block.shape}."
        )
    if len(block) != min(layout.rows, layout.n - begin):
        raise _changed(layout, f"{begin + len(block):,}")
    # A copy, which JAX may take as its own memory: a source may fill one array again and again, and the next block is
    # read while this one is in use.
    padding = np.zeros((layout.rows - len(block), layout.n_features), block.dtype)
    return jax.device_put(np.concatenate([block, padding]), sharding)


def _changed(layout: Layout, found: str) -> ValueError:
    return ValueError(
        f"the source has {layout.n:,} pairs and gave {found}: it must give the same every time."
    )
