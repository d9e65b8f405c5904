"""Names and texts from files, shown so that they cannot harm a terminal."""

import contextlib
import os
import re
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any


def harmless(text: str | os.PathLike) -> str:
    r"""`text` with what is not printable as escapes: "\x1b" for the code that starts a terminal's commands.

    Newlines, bytes of a file name that are no UTF-8 and characters that change the direction of writing are among them.
    """
    text = os.fspath(text)
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


# Joiners of letters, as Persian has them, and of emoji.
JOINERS = "\u200c\u200d"


def readable(text: str) -> str:
    r"""`harmless` for a text that people read: tabs, wide and unbroken spaces and joiners stay, and "\r\n" is "\n".

    **Example:**

    >>> from robust_rlhf_jax.terminal import readable
    >>> readable("a\tb\r\nc\xa0d\x1b[31m") == "a\tb\nc\xa0d" + r"\x1b[31m"
    True
    """
    text = text.replace("\r\n", "\n")
    escaped = {ord(sign): harmless(sign) for sign in set(text) if not _is_text(sign)}
    return text.translate(escaped) if escaped else text


def _is_text(sign: str) -> bool:
    return sign.isprintable() or sign in f"\t\n{JOINERS}" or unicodedata.category(sign) == "Zs"


def marked(text: str | os.PathLike) -> str:
    """`harmless` for rich's markup, which would take "[red]" for a colour."""
    from rich.markup import escape

    return escape(harmless(text))


def shortened(text: str, length: int) -> str:
    """`text` in at most `length` characters, with "…" where something is missing, if it can be after a whole word."""
    if len(text) <= length:
        return text
    whole = text[:length].rpartition(" ")[0]
    # Languages without spaces, and long addresses, have none near the end.
    kept = whole if len(whole) > length // 2 else text[: length - 1]
    return f"{kept.rstrip()}…"


def beginning(text: str, length: int) -> str:
    """How a text that people wrote begins, `readable` and in one line of at most `length` characters.

    **Example:**

    >>> from robust_rlhf_jax.terminal import beginning
    >>> beginning("Boil it first.\\nThen wait.", 18)
    'Boil it first.…'
    """
    # A book is not split into words for the sake of a line.
    return readable(shortened(" ".join(text[: 4 * length].split()), length))


def counted(number: int, what: str) -> str:
    """A number of things in words: "1 pair", "1,200 pairs"."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


# Names that a representation lists.
SHOWN = 6


def some_of(names: Sequence[Any]) -> str:
    """The first names in brackets, to follow their number; "" of none."""
    some = ", ".join(map(str, names[:SHOWN])) + (", …" if len(names) > SHOWN else "")
    return f" ({some})" if some else ""


def print_anything(*streams: Any) -> None:
    """Print characters that a stream's encoding lacks as escapes, so that they do not end the work."""
    for stream in streams:
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def flush_or_drop(stream: Any) -> None:
    """Write out what waits to be printed, or drop it, so that it does not raise again when Python ends."""
    if stream is None:
        return
    try:
        stream.flush()
    except OSError:
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextlib.contextmanager
def harmless_errors(words: list[str]) -> Iterator[None]:
    """While the block runs, what it writes to stderr is harmless, where `words`, which it may repeat, are not."""
    if all(word.isprintable() for word in words):
        yield
        return
    with contextlib.redirect_stderr(_Harmless(sys.stderr)):
        yield


@contextlib.contextmanager
def wrapped_help(words: list[str]) -> Iterator[None]:
    """While the block runs, a help that `words` ask for has no line that a terminal would break within a word, and
    names no default where there is none."""
    if not {"-h", "--help"} & {*words} or sys.stdout is None:
        yield
        return
    wrapped = _Wrapped(sys.stdout)
    try:
        with contextlib.redirect_stdout(wrapped):
            yield
    finally:
        wrapped.release()


class _Before:
    """A text stream before another one, which changes each line that is written."""

    def __init__(self, stream: Any):
        self.stream = stream

    def changed(self, line: str) -> str:
        raise NotImplementedError

    def write(self, text: str) -> int:
        self.stream.write("\n".join(map(self.changed, text.split("\n"))))
        return len(text)

    def flush(self) -> None:
        self.stream.flush()

    def __getattr__(self, name: str):
        return getattr(self.stream, name)


class _Harmless(_Before):
    def changed(self, line: str) -> str:
        return harmless(line)


# What a help says of a flag that has no default; a line may end within.
NO_DEFAULT = re.compile(r"\(default:(?P<between>(?:\x1b\[[\d;]*m|[ |│\n])+)None\)")


class _Wrapped(_Before):
    """What is drawn in boxes, or has colours, fits already or is not text."""

    def __init__(self, stream: Any):
        super().__init__(stream)
        self.held: list[str] = []

    def write(self, text: str) -> int:
        """Held until all is there, since what is changed may stand in two lines."""
        self.held.append(text)
        return len(text)

    def release(self) -> None:
        said = NO_DEFAULT.sub(lambda match: " " * 9 + match["between"] + " " * 5, "".join(self.held))
        super().write(said)

    def changed(self, line: str) -> str:
        width = shutil.get_terminal_size().columns
        if len(line) <= width or not line[:1].isalpha() or "\x1b" in line:
            return line
        further = "  " if line.startswith("usage:") else ""
        # The names of commands between braces are one word otherwise.
        parts = textwrap.wrap(line.replace(",", ", ") if further else line, width, subsequent_indent=further)
        return "\n".join(parts)
