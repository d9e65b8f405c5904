"""NumPy archives in and out; nothing is unpickled, and no header is believed."""

import lzma
import struct
import tokenize
import zipfile
import zlib
from collections import Counter
from pathlib import Path
from typing import IO, Any

import numpy as np

from robust_rlhf_jax.memory import check_room

# What zipfile, its decompressors and NumPy's reader of headers raise on damaged bytes, beside ValueError.
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    OSError,
    RuntimeError,
    NotImplementedError,
    OverflowError,
    MemoryError,
    TypeError,
    KeyError,
    SyntaxError,
    tokenize.TokenError,
)


def write_arrays(file: IO[bytes], arrays: dict[str, np.ndarray], header: dict) -> None:
    """Arrays and the header's single values as members of one archive, in an open file."""
    members = {name: np.asarray(value) for name, value in header.items()} | arrays
    np.savez_compressed(file, **members)  # pyright: ignore[reportArgumentType]


def read_arrays(path: Path, header: tuple[str, ...]) -> tuple[dict[str, np.ndarray], dict]:
    """(arrays, the single values named in `header`).

    **Raises:** ValueError for a file that is no archive of arrays, is damaged, pickled or larger than the memory.
    """
    if not zipfile.is_zipfile(path):
        raise _no_archive(path)
    _check_members(path)
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except DAMAGE as error:
        raise _unreadable(path, error) from None
    except ValueError as error:
        raise _pickled(path) if "allow_pickle" in str(error) else _unreadable(path, error) from None
    if not all(isinstance(array, np.ndarray) for array in arrays.values()):
        raise ValueError(f"{path} holds members that are not arrays: write it with save or numpy.savez.")
    return arrays, {name: _scalar(path, name, arrays.pop(name)) for name in header if name in arrays}


def names_of(path: Path) -> set[str]:
    """The names of the arrays of an archive.

    **Raises:** ValueError for a file that is no such archive.
    """
    if path.stat().st_size == 0:
        raise ValueError(f"{path} is empty (0 bytes): write the data again.")
    if not zipfile.is_zipfile(path):
        raise _no_archive(path)
    try:
        with zipfile.ZipFile(path) as archive:
            return {name.removesuffix(".npy") for name in archive.namelist()}
    except (*DAMAGE, ValueError) as error:
        raise _unreadable(path, error) from None


def _no_archive(path: Any):
    return ValueError(
        f"{path} is not a readable .npz archive (cut short, pickled, or another format): "
        "write it again with save or numpy.savez."
    )


def _check_members(path: Any):
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (*DAMAGE, ValueError) as error:
        raise _unreadable(path, error) from None
    for name, count in Counter(member.filename for member in members).items():
        if count > 1:
            raise ValueError(f"{path} holds {name!r} twice: write it again.")
    size = sum(member.file_size for member in members)
    check_room(f"{path}: unpacking it", size, "write it in smaller files")


def _unreadable(path: Any, error: Exception):
    reason = str(error).split("\n")[0].rstrip(".") or type(error).__name__
    return ValueError(f"{path} is not a readable .npz archive ({reason}): write it again.")


def _pickled(path: Any):
    return ValueError(
        f"{path} holds Python objects, which only pickle could read, and pickle is refused because it "
        "can run code: save plain arrays of numbers (no object dtype)."
    )


def _scalar(path: Any, name: str, array: np.ndarray):
    if array.size != 1 or array.dtype.kind not in "biu":
        raise ValueError(f"{path}: {name} must be one integer or boolean, not {array.dtype} {array.shape}.")
    return array.item()
