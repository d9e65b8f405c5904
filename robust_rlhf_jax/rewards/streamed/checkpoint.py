"""The state of a fit after each pass, in files that are whole or absent, each with a checksum."""

import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from robust_rlhf_jax.unfinished import remove_leftovers, write_whole

# The name of the array that holds the checksum of the others.
SEAL = "seal"
DAMAGE = (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile)


class Checkpoint:
    """Named states of one fit in `folder`; nothing where there is none.

    **Arguments:** `facts`: what the fit is of. A state of another fit is not read.
    """

    def __init__(self, folder: Path | None, facts: dict[str, Any]):
        self.folder = folder
        self.facts = hashlib.sha256(json.dumps(facts, sort_keys=True, default=float).encode()).hexdigest()
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            remove_leftovers(folder)

    def save(self, name: str, **arrays: np.ndarray) -> None:
        """Keep `arrays` as the state `name`."""
        if self.folder is None:
            return
        content = io.BytesIO()
        with_seal: dict[str, Any] = {**arrays, SEAL: np.frombuffer(self._digest(arrays), np.uint8)}
        np.savez(content, **with_seal)
        write_whole(self.folder / f"{name}.npz", content.getvalue())

    def load(self, name: str) -> dict[str, np.ndarray] | None:
        """The state `name` of this fit; None where there is none, or it is damaged, or of another fit."""
        if self.folder is None or not (path := self.folder / f"{name}.npz").is_file():
            return None
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {key: file[key] for key in file.files}
            seal = arrays.pop(SEAL)
        except DAMAGE:
            return None
        return arrays if seal.tobytes() == self._digest(arrays) else None

    def _digest(self, arrays: dict[str, np.ndarray]) -> bytes:
        digest = hashlib.sha256(self.facts.encode())
        for name in sorted(arrays):
            array = np.ascontiguousarray(arrays[name])
            digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
            digest.update(array.data if array.size else b"")
        return digest.digest()
