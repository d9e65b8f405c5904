"""The random key of every cell, from names alone: a cell draws the same in whatever sweep it stands."""

import zlib

import jax
import numpy as np

from ._named_key import named_key
from .config import SweepConfig


def cell_keys(config: SweepConfig, purpose: str, family: np.ndarray, seed: np.ndarray) -> jax.Array:
    """Keys [lanes] for (purpose, family, seed); ε has none of its own, so that larger budgets add to smaller ones."""
    root = named_key(jax.random.key(config.seed), purpose)
    names = np.asarray([zlib.crc32(name.encode()) for name in config.families], np.uint32)
    fold = jax.vmap(jax.random.fold_in)
    return fold(jax.vmap(jax.random.fold_in, (None, 0))(root, names[family]), seed)
