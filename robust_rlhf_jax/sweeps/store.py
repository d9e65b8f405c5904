"""Finished batches on disk: one parquet part each, whole or absent, so that a stopped sweep goes on where it was."""

import hashlib
import json
import os
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

import jax
import numpy as np

from robust_rlhf_jax.outputs import remove_leftovers, unfinished_name

from .batches import Lanes
from .config import SweepConfig

# Part of every name: raise it when cells come to mean something else, and old parts are computed anew.
FORMAT = 2


class Store(Protocol):
    """Rows of finished batches by name."""

    def read(self, name: str) -> list[dict[str, Any]] | None: ...

    def write(self, name: str, rows: list[dict[str, Any]]) -> None: ...


class MemoryStore:
    """Keeps nothing: every batch is computed."""

    def read(self, name: str) -> list[dict[str, Any]] | None:
        return None

    def write(self, name: str, rows: list[dict[str, Any]]) -> None:
        pass


class PartStore:
    """`folder`/NAME.parquet, written under another name and renamed when whole.

    What a killed run left half-written is removed at the start. A part that cannot be read is no part.

    **Raises:** OSError where the folder cannot be made or written.
    """

    def __init__(self, folder: Path):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(self.folder)

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.parquet"

    def read(self, name: str) -> list[dict[str, Any]] | None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = self._path(name)
        if not path.exists():
            return None
        try:
            return pq.ParquetFile(path, page_checksum_verification=True).read().to_pylist()
        except (pa.ArrowException, OSError):  # cut short by a full disk, say: computed anew, and replaced
            return None

    def write(self, name: str, rows: list[dict[str, Any]]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        unfinished = self.folder / unfinished_name(name)
        pq.write_table(pa.Table.from_pylist(rows), unfinished, write_page_checksum=True)
        os.replace(unfinished, self._path(name))


def world_digests(config: SweepConfig, worlds) -> list[str]:
    """Per family a hash of its world as the programs see it, padding included."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(worlds)]
    shapes = repr([(leaf.shape[1:], str(leaf.dtype)) for leaf in leaves]).encode()
    return [
        hashlib.sha256(shapes + b"".join(leaf[i].tobytes() for leaf in leaves)).hexdigest()
        for i in range(len(config.families))
    ]


def batch_name(
    config: SweepConfig, digests: list[str], attack: str, algorithm: str, lanes: Lanes, width: int = 0
) -> str:
    """Hash of all that the numbers of a batch depend on.

    Those are the settings, the worlds, attack and algorithm, the cells in order, the versions of this library and of
    JAX, the platform and JAX's own settings, and off the CPU `width`, the lanes of a batch with its padding.
    """
    cells = [
        [config.families[f], digests[f], int(s), float(e)]
        for f, s, e in zip(lanes.family, lanes.seed, np.asarray(lanes.epsilons), strict=True)
    ]
    settings = [config.preset, config.pairs, config.temperature, config.seed]
    text = json.dumps([FORMAT, _surroundings(width), settings, attack, algorithm, cells])
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _surroundings(width: int) -> list[Any]:
    packages = ("robust-rlhf-jax", "jax", "jaxlib")
    flags = (
        "jax_enable_x64",
        "jax_default_matmul_precision",
        "jax_default_prng_impl",
        "jax_threefry_partitionable",
    )
    platform = jax.default_backend()
    return [
        [metadata.version(package) for package in packages],
        [str(getattr(jax.config, flag)) for flag in flags],
        platform,
        None if platform == "cpu" else [width, jax.device_count()],
    ]
