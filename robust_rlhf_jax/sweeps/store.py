"""Finished batches on disk: one parquet part each, whole or absent, so that a stopped sweep goes on where it was."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from .config import SweepConfig

# Part of every name: raise it when cells come to mean something else, and old parts are computed anew.
FORMAT = 1


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

    **Raises:** OSError where the folder cannot be made or written.
    """

    def __init__(self, folder: Path):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.parquet"

    def read(self, name: str) -> list[dict[str, Any]] | None:
        import pyarrow.parquet as pq

        path = self._path(name)
        return pq.read_table(path).to_pylist() if path.exists() else None

    def write(self, name: str, rows: list[dict[str, Any]]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        unfinished = self.folder / f".{name}.{os.getpid()}.unfinished"
        pq.write_table(pa.Table.from_pylist(rows), unfinished)
        os.replace(unfinished, self._path(name))


def batch_name(config: SweepConfig, attack: str, algorithm: str, lanes) -> str:
    """Hash of all that the numbers of a batch depend on: settings, attack, algorithm and its cells in order."""
    cells = [
        [config.families[f], int(s), float(e)]
        for f, s, e in zip(lanes.family, lanes.seed, np.asarray(lanes.epsilons), strict=True)
    ]
    settings = [FORMAT, config.preset, config.pairs, config.temperature, config.seed]
    text = json.dumps([settings, attack, algorithm, cells])
    return hashlib.sha256(text.encode()).hexdigest()[:24]
