"""What the flags that a message names are called in Python."""

import contextlib
import dataclasses
import re
from collections.abc import Iterator

from .columns import Columns

_FLAG = re.compile(r"(?<!\S)--([a-z]+(?:-[a-z]+)*)")
_OF_COLUMNS = {field.name for field in dataclasses.fields(Columns)}
_OF_READING = {"embeddings", "encoding", "features", "featuriser", "skip_bad", "split"}


@contextlib.contextmanager
def flags_in_python() -> Iterator[None]:
    """Adds a note to a ValueError that names flags: a traceback shows it, the command, which prints the message alone,
    does not.
    """
    try:
        yield
    except ValueError as error:
        if note := python_names(str(error)):
            error.add_note(note)
        raise


def python_names(message: str) -> str | None:
    """What `load_pairs` takes for the flags that a message names, in a sentence; None where it names none.

    >>> python_names("votes.csv: say which value means the first side, by --first-is 0 or --first-is 1.")
    'For this io.load_pairs has columns=io.Columns(first_is=…).'
    """
    names = list(dict.fromkeys(flag.replace("-", "_") for flag in _FLAG.findall(message)))
    columns = ", ".join(f"{name}=…" for name in names if name in _OF_COLUMNS)
    others = [f"{name}=…" for name in names if name in _OF_READING]
    given = ([f"columns=io.Columns({columns})"] if columns else []) + others
    return f"For this io.load_pairs has {' and '.join(given)}." if given else None
