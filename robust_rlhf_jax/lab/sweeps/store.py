"""Finished batches on disk: one parquet part each, whole or absent, so that a stopped sweep can resume."""

import hashlib
import json
import os
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

import jax
import numpy as np

from robust_rlhf_jax.unfinished import remove_leftovers, write_whole

from .batches import Lanes
from .config import SweepConfig
from .families import World
from .sealed import CELLS, Part, read_part, sealed
from .source_digest import source_digest

# Part of every name: raise it when cells come to mean something else, and old parts are computed anew.
FORMAT = 3


class Store(Protocol):
    """Rows of finished batches by name."""

    def read(self, name: str) -> list[dict[str, Any]] | None: ...

    def write(self, name: str, rows: list[dict[str, Any]], kind: str = CELLS) -> None: ...


class MemoryStore:
    """Keeps nothing: every batch is computed."""

    def read(self, name: str) -> list[dict[str, Any]] | None:
        return None

    def write(self, name: str, rows: list[dict[str, Any]], kind: str = CELLS) -> None:
        pass


class PartStore:
    """`folder`/NAME.parquet, written under another name and renamed when whole.

    The folder is made with its first part. What a killed run left half-written is removed at the start. A part that is
    not to the bit what was written, that is another's or that cannot be read, is ignored, computed anew and replaced.
    `settings`: what is remembered of the sweep or reproduction beside its first part, so that parts of two are not
    taken for one.

    **Raises:** ValueError where something else has the folder's name; OSError where it cannot be made or written.
    """

    def __init__(self, folder: Path):
        self.folder = Path(folder)
        if os.path.lexists(self.folder) and not self.folder.is_dir():
            raise ValueError(f"{self.folder} is no folder, and finished parts go there: move it away.")
        remove_leftovers(self.folder)
        self.settings: dict[str, Any] | None = None

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.parquet"

    def read(self, name: str) -> list[dict[str, Any]] | None:
        try:
            return read_part(self._path(name)).rows
        except (ValueError, OSError):
            return None

    def write(self, name: str, rows: list[dict[str, Any]], kind: str = CELLS) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.settings is not None:
            remember(self.folder, self.settings)
            self.settings = None
        write_whole(self._path(name), sealed(Part(kind, name, rows)))


def opened(store: Store | str | os.PathLike[str] | None, config: SweepConfig) -> Store:
    """The store of the sweep `config`: parts in the folder of a path, nothing for None.

    **Raises:** ValueError for what is neither a path nor a store.
    """
    if store is None:
        return MemoryStore()
    if isinstance(store, str | os.PathLike):
        parts = PartStore(Path(store))
        parts.settings = settings_of_cells(config)
        return parts
    if not (hasattr(store, "read") and hasattr(store, "write")):
        raise ValueError(f"store is of the type {type(store).__name__}: give the path of a folder for parts.")
    return store


def world_digests(config: SweepConfig, worlds: World) -> list[str]:
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

    Those are the settings, the worlds, attack and algorithm, the cells in order, this library's version and source
    code, JAX's version, the platform and JAX's own settings, and off the CPU `width`, the lanes of a batch with its
    padding.
    """
    cells = [
        [config.families[f], digests[f], int(s), float(e)]
        for f, s, e in zip(lanes.family, lanes.seed, np.asarray(lanes.epsilons), strict=True)
    ]
    return part_hash([*settings_of_cells(config).values()], attack, algorithm, cells, width=width)


def part_hash(*what: Any, width: int = 0) -> str:
    """24 digits for numbers that depend on `what`, which JSON can hold, and on the surroundings."""
    text = json.dumps([FORMAT, _surroundings(width), *what])
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
        source_digest(),
        [str(getattr(jax.config, flag)) for flag in flags],
        platform,
        None if platform == "cpu" else [width, jax.device_count()],
    ]


# Beside the parts: the settings that change the numbers of a cell, of every sweep and reproduction that began in the
# folder. A reproduction says under this name which it is.
SETTINGS, REPRODUCES = "settings.json", "reproduction"


def remember(folder: Path, settings: dict[str, Any]) -> None:
    """Add these settings to the folder's."""
    known = settings_in(folder)
    if settings not in known:
        write_whole(folder / SETTINGS, json.dumps([*known, settings]).encode())


def settings_in(folder: Path) -> list[dict[str, Any]]:
    """What `remember` has written; [] where it is damaged or missing."""
    try:
        found = json.loads((folder / SETTINGS).read_bytes())
    except (OSError, ValueError):
        return []
    return found if isinstance(found, list) and all(isinstance(one, dict) for one in found) else []


def settings_of_cells(config: SweepConfig) -> dict[str, Any]:
    """What changes the numbers of a cell but is not in its row."""
    return {
        "preset": config.preset, "n_pairs": config.pairs, "temperature": config.temperature, "seed": config.seed,
    }  # fmt: skip
