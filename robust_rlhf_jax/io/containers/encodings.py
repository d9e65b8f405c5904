"""The encoding of a text file: UTF-8, UTF-16 and UTF-32 for certain, Latin-1 where nothing speaks against it."""

import codecs
import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TextIO

from .compression import open_bytes, open_to_write

MARKS = (  # the longer ones first: UTF-32's begins as UTF-16's
    (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"), (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip
BLOCK = 1 << 20
# Bytes that do not occur in Latin-1 texts.
CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")


class Encoding(NamedTuple):
    """`name`: Python's; `note`: what to tell the reader; `cut`: whether the last character is incomplete."""

    name: str
    note: str = ""
    cut: bool = False


def encoding_of(path: Path, compression: str, asked: str | None = None) -> Encoding:
    """**Raises:** ValueError for an unknown name, and for bytes that are neither Unicode nor Latin-1 throughout."""
    if asked is not None:
        return _as_asked(path, compression, asked)
    with open_bytes(path, compression) as file:
        head = file.read(4096)
    mark = next((name for bom, name in MARKS if head.startswith(bom)), None)
    if mark in ("utf-16", "utf-32"):
        return Encoding(mark, f"Read as {mark.upper()}.")
    for start, name in ((1, "utf-16-le"), (0, "utf-16-be")):
        if (
            len(head) > 3
            and head[start::2].count(0) > 0.6 * len(head[start::2])
            and not head[1 - start :: 2].count(0)
        ):
            return Encoding(name, f"Read as {name.upper()}.")
    name = mark or "utf-8"
    place, reason = _first_error(path, compression, "utf-8")
    if place is None:
        return Encoding(name)
    if reason == "unexpected end of data":
        return Encoding(name, "The file ends within a letter: it was cut short.", cut=True)
    return _one_byte(path, compression, place)


def _as_asked(path: Path, compression: str, asked: str) -> Encoding:
    try:
        codecs.lookup(asked)
    except (LookupError, ValueError, TypeError):
        raise ValueError(
            f"--encoding {asked} is unknown: give one such as utf-8, utf-16, latin-1 or cp1252."
        ) from None
    try:
        place, _ = _first_error(path, compression, asked)
    except (LookupError, ValueError, TypeError) as error:
        raise ValueError(f"{path} is not {asked} ({error}): give another --encoding.") from None
    if place is not None:
        raise ValueError(f"{path} is not {asked} (byte {place}): give another --encoding.")
    return Encoding(asked)


def _first_error(path: Path, compression: str, encoding: str) -> tuple[int | None, str]:
    decoder = codecs.getincrementaldecoder(encoding)()
    done = 0
    with open_bytes(path, compression) as file:
        while True:
            block = file.read(BLOCK)
            try:
                decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                return done + error.start, error.reason
            if not block:
                return None, ""
            done += len(block)


def _one_byte(path: Path, compression: str, place: int) -> Encoding:
    """Latin-1 (as Windows has it) if no character beyond ASCII is valid UTF-8, so that nothing looks like damage."""
    with open_bytes(path, compression) as file:
        content = file.read()
    escaped = content.decode("utf-8", errors="surrogateescape")
    valid = sum(1 for c in re.findall(r"[^\x00-\x7f]", escaped) if not "\udc80" <= c <= "\udcff")
    if valid or CONTROL.search(content):
        raise ValueError(
            f"{path} cannot be read as UTF-8 (byte {place} is damaged): write it again, or name its --encoding."
        )
    try:
        content.decode("cp1252")
    except UnicodeDecodeError:
        return Encoding("latin-1", "Read as Latin-1, since it is not UTF-8: --encoding names another.")
    return Encoding(
        "cp1252", "Read as Latin-1 (Windows-1252), since it is not UTF-8: --encoding names another."
    )


@contextlib.contextmanager
def open_text(path: Path, compression: str, encoding: Encoding, newline: str = "") -> Iterator[TextIO]:
    """The text inside, without a byte-order mark; a character that was cut off is replaced."""
    errors = "replace" if encoding.cut else "strict"
    with open_bytes(path, compression) as file:
        yield io.TextIOWrapper(file, encoding=encoding.name, errors=errors, newline=newline)


@contextlib.contextmanager
def write_text(path: Path, compression: str, encoding: str) -> Iterator[TextIO]:
    """A text file to be written; what the encoding does not have is written as an escape."""
    with open_to_write(path, compression) as file:
        text = io.TextIOWrapper(file, encoding=encoding, errors="backslashreplace", newline="")
        yield text
        text.flush()
        text.detach()
