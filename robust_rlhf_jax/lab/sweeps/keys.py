"""The random key of every cell, from names alone: a cell draws the same in whatever sweep it stands."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import jax
import numpy as np

if TYPE_CHECKING:
    from .config import SweepConfig


def named_key(key: jax.Array, name: str) -> jax.Array:
    """A key of its own for `name`."""
    return jax.random.fold_in(key, zlib.crc32(name.encode()))


def cell_keys(config: SweepConfig, purpose: str, family: np.ndarray, seed: np.ndarray) -> jax.Array:
    """Keys [lanes] for (purpose, family, seed); ε has none of its own, so that larger budgets add to smaller ones."""
    root = named_key(jax.random.key(config.seed), purpose)
    names = np.asarray([zlib.crc32(name.encode()) for name in config.families], np.uint32)
    fold = jax.vmap(jax.random.fold_in)
    return fold(jax.vmap(jax.random.fold_in, (None, 0))(root, names[family]), seed)
