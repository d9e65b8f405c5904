"""Shards of both sides that are written one after the other, and go on where they were interrupted."""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Shaped

from robust_rlhf_jax.unfinished import held, remove_leftovers, whole_path, write_whole

from .npy_shard import npy_shard
from .shards import FEATURES

FACTS = "embedding.json"


@contextlib.contextmanager
def unfinished_shards(folder: Path, facts: dict[str, Any]) -> Iterator["UnfinishedShards"]:
    """A block that writes the shards of `folder`, which has `.partial` behind its name until all are there.

    No other process writes them meanwhile. Nothing stays where an error ends it before the first shard.

    **Arguments:** `facts`: what they are made of, as JSON has it.

    **Raises:** ValueError where a `.partial` folder holds shards of other facts, is none of ours, is in use, or cannot
    be made.
    """
    place = partial(folder)
    kept = place / FACTS
    foreign = (
        f"{place} is there already, and holds no unfinished embedding: move it away, or give another folder."
    )
    if place.exists() and not place.is_dir():
        raise ValueError(foreign)
    try:
        place.mkdir(exist_ok=True)
    except OSError as error:
        raise ValueError(f"{folder} cannot be written ({error.strerror}): give another folder.") from None
    with held(place):
        # Killed before it wrote the facts, a process leaves a piece of them.
        remove_leftovers(place)
        if not kept.exists() and any(place.iterdir()):
            raise ValueError(foreign)
        content = (json.dumps(facts, indent=2, sort_keys=True, default=str) + "\n").encode()
        if kept.exists() and kept.read_bytes() != content:
            raise ValueError(
                f"{place} holds an unfinished embedding of another file or with other settings: remove it, or give "
                "another folder."
            )
        write_whole(kept, content)
        unfinished = UnfinishedShards(folder, place)
        try:
            yield unfinished
        except BaseException:
            unfinished.forget()
            raise


class UnfinishedShards(NamedTuple):
    """The shards of `folder`, which are at `place` until all are there."""

    folder: Path
    place: Path

    def has(self, number: int, rows: int) -> bool:
        """Whether both sides of a shard are there, with so many rows."""
        return all(_rows_of(self._file(side, number)) == rows for side in ("chosen", "rejected"))

    def save_shard(self, number: int, **sides: Shaped[np.ndarray, "m k"]) -> None:
        """Write `chosen` and `rejected`, each whole or not at all."""
        for side, values in sides.items():
            _save(self._file(side, number), values)

    def save(self, name: str, values: Shaped[np.ndarray, " N"]) -> None:
        """Write what stands beside the shards."""
        _save(self.place / f"{name}.npy", values)

    def n_features(self) -> int:
        return npy_shard(self._file("chosen", 0)).shape[1]

    def forget(self) -> None:
        """Remove our files, and the folder if nothing else is in it, where it has no shard yet."""
        if any(self.place.glob("chosen-*.npy")):
            return
        for name in (FACTS, FEATURES):
            (self.place / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # not empty: a file of somebody else
            self.place.rmdir()

    def finish(self) -> Path:
        """Give the folder its name, and return it."""
        if self.folder.exists():  # empty, or it would have been refused
            self.folder.rmdir()
        os.rename(self.place, self.folder)
        return self.folder

    def _file(self, side: str, number: int) -> Path:
        return self.place / f"{side}-{number:05}.npy"


def partial(folder: Path) -> Path:
    """Where the shards of `folder` are until all are there."""
    return folder.with_name(f"{folder.name}.partial")


def _rows_of(file: Path) -> int:
    """0 of a file that is missing or damaged."""
    try:
        return npy_shard(file).shape[0]
    except (ValueError, OSError):
        return 0


def _save(file: Path, values: np.ndarray) -> None:
    with whole_path(file) as scratch, open(scratch, "wb") as to:
        np.save(to, values, allow_pickle=False)
