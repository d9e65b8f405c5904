"""Tensors by name (.safetensors)."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..table import Source, Table
from .named_arrays import Arrays, table_of, with_vectors

ORDER, NAME, SUFFIXES, PACKED = 70, "safetensors", (".safetensors",), True


def read(path: Path, how: dict[str, Any]) -> Table:
    """**Raises:** ValueError for a file that is damaged, or whose names do not tell the sides."""
    return table_of(Source(path, (path,), NAME), _arrays(path)[0])


def write(source: Source, path: Path, rows: Sequence[int], extra: dict[str, list]) -> None:
    """The same tensors with their `rows`, and one for each further column."""
    from safetensors.numpy import save_file

    arrays, metadata = _arrays(source.file)
    made = with_vectors(source, arrays, rows, extra)
    for name, array in list(made.items()):
        if array.dtype.kind in "US":  # tensors are numbers: the words are in the metadata
            words, codes = np.unique(array, return_inverse=True)
            made[name] = codes.astype(np.int8)
            metadata = metadata | {f"{name} words": json.dumps(words.tolist())}
    save_file({n: np.ascontiguousarray(a) for n, a in made.items()}, str(path), metadata or None)


def _arrays(path: Path) -> tuple[Arrays, dict[str, str]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="numpy") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (SafetensorError, OSError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} is no readable .safetensors file ({str(error).rstrip('.')}): write it again."
        ) from None
