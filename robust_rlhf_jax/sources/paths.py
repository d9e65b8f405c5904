"""The files that a source reads: one, several in the order given, or those of a folder in the order of their names."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from robust_rlhf_jax.io.npy_arrays import by_number

Paths = str | Path | Sequence[str | Path]


def files_of(paths: Paths, suffixes: tuple[str, ...], apart: tuple[str, ...] = ()) -> list[Path]:
    """The files at `paths`; of a folder as `within`.

    **Raises:** FileNotFoundError for a path that does not exist; ValueError where there is no file, or a folder
    called like one.
    """
    given = [Path(paths)] if isinstance(paths, str | Path) else [Path(path) for path in paths]
    found = [file for path in given for file in (within(path, suffixes, apart) if path.is_dir() else [path])]
    lost = next((file for file in found if not file.exists()), None)
    if lost is not None:
        raise FileNotFoundError(f"{lost} does not exist: check the path.")
    inner = next((file for file in found if file.is_dir()), None)
    if inner is not None:
        raise ValueError(f"{inner} is a folder among the files: give one folder of files, or move it away.")
    if not found:
        shown = ", ".join(map(str, given)) or "The list of paths"
        raise ValueError(f"{shown} has no {' or '.join(suffixes)} file: give files, or a folder of them.")
    return found


def within(folder: Path, suffixes: tuple[str, ...], apart: tuple[str, ...] = ()) -> list[Path]:
    """Files of a folder with one of the `suffixes`, in the order of their names, numbers in these by value, but hidden
    ones and those that are called as in `apart`.
    """
    files = (file for file in folder.iterdir() if not file.name.startswith("."))
    found = (file for file in files if file.suffix.lower() in suffixes and file.stem not in apart)
    return sorted(found, key=lambda file: by_number(file.name))


def row_of(pair: int, files: Sequence[Path], lengths: Sequence[int]) -> str:
    """Where a pair stands in files of so many rows each, for a message."""
    file = int(np.searchsorted(np.cumsum(lengths), pair, side="right"))
    return f"row {pair - sum(lengths[:file]):,} (from 0) of {files[file]}"
