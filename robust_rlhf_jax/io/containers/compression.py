"""Compressed files, told by their first bytes: gzip, bzip2, xz and zstd."""

import bz2
import contextlib
import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Literal, cast

# Name: (first bytes, suffix).
COMPRESSIONS = {
    "gzip": (b"\x1f\x8b", ".gz"),
    "bzip2": (b"BZh", ".bz2"),
    "xz": (b"\xfd7zXZ\x00", ".xz"),
    "zstd": (b"\x28\xb5\x2f\xfd", ".zst"),
}
SUFFIXES = tuple(suffix for _, suffix in COMPRESSIONS.values())
DAMAGE = (EOFError, OSError, zlib.error, lzma.LZMAError)


def compression_of(path: Path) -> str:
    """A name in `COMPRESSIONS`, or an empty text."""
    with open(path, "rb") as file:
        head = file.read(6)
    return next((name for name, (magic, _) in COMPRESSIONS.items() if head.startswith(magic)), "")


def without_compression(path: Path) -> str:
    """The name of the file inside: "a.csv.gz" is "a.csv"."""
    return path.name[: -len(path.suffix)] if path.suffix.lower() in SUFFIXES else path.name


@contextlib.contextmanager
def open_bytes(path: Path, compression: str) -> Iterator[BinaryIO]:
    """The bytes inside.

    **Raises:** ValueError for a damaged or truncated file; ImportError for zstd without pyarrow.
    """
    try:
        with _opened(path, compression, "rb") as file:
            yield file
    except DAMAGE as error:
        if not compression:
            raise
        raise ValueError(
            f"{path} is compressed by {compression} and damaged or cut short ({str(error).rstrip('.')}): "
            f"write it again."
        ) from None


def open_to_write(path: Path, compression: str) -> BinaryIO:
    """A file whose bytes are compressed as they are written; the same bytes for the same content."""
    if compression == "gzip":
        return cast(BinaryIO, _Nameless(path))
    return _opened(path, compression, "wb")


class _Nameless(gzip.GzipFile):
    """Gzip without time and name in its header: the name would be that of the unfinished file, another each time."""

    def __init__(self, path: Path):
        self._file = open(path, "wb")  # noqa: SIM115 (closed by `close`)
        super().__init__("", "wb", fileobj=self._file, mtime=0)

    def close(self) -> None:
        try:
            super().close()
        finally:
            self._file.close()


def _opened(path: Path, compression: str, mode: Literal["rb", "wb"]) -> BinaryIO:
    openers = {"": open, "gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}
    if compression in openers:
        return cast(BinaryIO, openers[compression](path, mode))
    import pyarrow as pa

    stream, buffered = (
        (pa.input_stream, io.BufferedReader) if mode == "rb" else (pa.output_stream, io.BufferedWriter)
    )
    return cast(BinaryIO, buffered(cast(io.RawIOBase, stream(str(path), compression="zstd"))))
