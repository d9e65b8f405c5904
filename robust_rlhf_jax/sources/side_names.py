"""Files that are called after a side of pairs, and would be read as differences."""

import re
from collections.abc import Iterable
from pathlib import Path
from string import ascii_lowercase

# Words for the side that won and the one that lost, in names of files that are alike but for them.
SIDES = (
    ("chosen", "rejected"), ("preferred", "rejected"), ("preferred", "dispreferred"), ("accepted", "rejected"),
    ("selected", "rejected"), ("accepted", "refused"), ("winner", "loser"), ("winners", "losers"), ("win", "lose"),
    ("winning", "losing"), ("won", "lost"), ("better", "worse"), ("best", "worst"), ("positive", "negative"),
    ("positives", "negatives"), ("pos", "neg"), ("w", "l"),
)  # fmt: skip
OURS = SIDES[0]
# What says that a file is of differences, whatever else it is called.
DIFFERENCES = {"diff", "diffs", "difference", "differences", "minus", "delta", "deltas"}
WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[^A-Za-z]+")


def both_sides(names: Iterable[str]) -> tuple[str, str] | None:
    """The first two of the `names` that are alike but for words of the two sides; None where there are none."""
    known = {tuple(_words(name)): name for name in names if not DIFFERENCES & {*_words(name)}}
    for words, name in known.items():
        for won, lost in SIDES:
            other = known.get(_with(words, won, lost))
            if won in words and other is not None and not _lettered(words, won, known):
                return name, other
    return None


def one_side(name: str) -> bool:
    """Whether the first or the last word of a file's name is one of the sides chosen and rejected, and the other side
    is none of the words."""
    words = [word for word in _words(name) if word.isalpha()]
    named = {*words[:1], *words[-1:]} & {*OURS}
    return bool(named) and not {*OURS} <= {*words} and not DIFFERENCES & {*words}


def _with(words: tuple[str, ...], old: str, new: str) -> tuple[str, ...]:
    return tuple(new if word == old else word for word in words)


def _lettered(words: tuple[str, ...], side: str, known: Iterable[tuple[str, ...]]) -> bool:
    """Whether a side of one letter is one of many parts, called a to z, of which w and l are two."""
    others = {*ascii_lowercase} - {*SIDES[-1]}
    return len(side) == 1 and any(_with(words, side, letter) in known for letter in others)


def _words(name: str) -> list[str]:
    return [word.casefold() for word in WORDS.findall(Path(name).stem)]
