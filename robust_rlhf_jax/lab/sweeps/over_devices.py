"""Run a function of one cell over many: on every device, and on each of them in the way that suits it."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from jaxtyping import Array, Int

AXIS = "cells"


def gather(tree: Any, index: Any):
    """Entry `index` of every leaf's leading axis."""
    return jax.tree.map(lambda leaf: leaf[index], tree)


def cell_mesh() -> jax.sharding.Mesh:
    """All devices in one row. Auto axes: under Explicit ones sort, quantile, cumsum and gather raise."""
    return jax.make_mesh((jax.device_count(),), (AXIS,), axis_types=(AxisType.Auto,))


def place(tree: Any, split: bool):
    """`tree` on all devices, its leading axis split over them or whole on each."""
    spec = PartitionSpec(AXIS) if split else PartitionSpec()
    return jax.device_put(tree, NamedSharding(cell_mesh(), spec))


def lane_counts(n_cells: int, width: int) -> np.ndarray:
    """[devices]: how many of each device's lanes hold a cell, where the first `n_cells` of `width` lanes do."""
    each = width // jax.device_count()
    return np.clip(n_cells - np.arange(jax.device_count()) * each, 0, each).astype(np.int32)


def over_lanes(
    lane: Callable,
    shared: Any,
    lanes: tuple,
    counts: Int[np.ndarray, " devices"] | Int[Array, " devices"] | None = None,
):
    """`lane(shared, *cell)` for every cell of `lanes`, whose leaves are [lanes, …], stacked along the same axis.

    Each device has its share of the lanes to itself (`shard_map`), so that no loop waits for another device. On CPU
    a device takes its cells one by one: no cell runs for as long as the slowest, and its numbers are to the bit the
    same in whatever batch it stands. Elsewhere the lanes are vmapped. `counts`: see `lane_counts`; lanes beyond hold
    anything. None: all hold a cell.
    """
    if counts is None:
        width = jax.tree.leaves(lanes)[0].shape[0]
        counts = lane_counts(width, width)
    run = partial(_one_by_one if jax.default_backend() == "cpu" else _at_once, lane)
    if jax.device_count() == 1:
        return run(shared, lanes, counts)
    whole, split = PartitionSpec(), PartitionSpec(AXIS)
    specs = (whole, split, split)
    return jax.shard_map(run, mesh=cell_mesh(), in_specs=specs, out_specs=split, check_vma=False)(
        shared, lanes, counts
    )


def _at_once(
    lane: Callable, shared: Any, lanes: tuple, counts: Int[np.ndarray, " devices"] | Int[Array, " devices"]
):
    return jax.vmap(lambda *cell: lane(shared, *cell))(*lanes)


def _one_by_one(
    lane: Callable, shared: Any, lanes: tuple, counts: Int[np.ndarray, " devices"] | Int[Array, " devices"]
):
    """The number of rounds is a traced value: were it known, XLA could compile one round unlike twenty."""
    width = jax.tree.leaves(lanes)[0].shape[0]
    shapes = jax.eval_shape(lambda cells: lane(shared, *gather(cells, 0)), lanes)
    empty = jax.tree.map(lambda leaf: jnp.zeros((width, *leaf.shape), leaf.dtype), shapes)

    def one(i: Int[Array, ""], out: Any):
        return jax.tree.map(lambda buffer, new: buffer.at[i].set(new), out, lane(shared, *gather(lanes, i)))

    return jax.lax.fori_loop(0, counts[0], one, empty)
