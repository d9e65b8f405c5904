"""Files that are called after a side of pairs, and would be read as differences."""

import re
from collections.abc import Iterable
from pathlib import Path

# Words for the side that won and the one that lost, in names of files that are alike but for them.
SIDES = (
    ("chosen", "rejected"), ("preferred", "rejected"), ("preferred", "dispreferred"), ("accepted", "rejected"),
    ("selected", "rejected"), ("accepted", "refused"), ("winner", "loser"), ("winners", "losers"), ("win", "lose"),
    ("winning", "losing"), ("won", "lost"), ("better", "worse"), ("best", "worst"), ("positive", "negative"),
    ("positives", "negatives"), ("pos", "neg"), ("w", "l"),
)  # fmt: skip
OURS = SIDES[0]
# What a file of differences may be called beside a side.
DIFFERENCE = re.compile("diff|minus|delta", re.IGNORECASE)
WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[^A-Za-z]+")


def both_sides(names: Iterable[str]) -> tuple[str, str] | None:
    """The first two of the `names` that are alike but for words of the two sides; None where there are none."""
    known = {tuple(_words(name)): name for name in names}
    for words, name in known.items():
        for won, lost in SIDES:
            other = known.get(tuple(lost if word == won else word for word in words))
            if won in words and other is not None:
                return name, other
    return None


def one_side(name: str) -> bool:
    """Whether the first or the last word of a file's name is one of the sides chosen and rejected, and the other side
    is none of the words."""
    words = [word for word in _words(name) if word.isalpha()]
    named = {*words[:1], *words[-1:]} & {*OURS}
    return bool(named) and not {*OURS} <= {*words} and not DIFFERENCE.search(name)


def _words(name: str) -> list[str]:
    return [word.casefold() for word in WORDS.findall(Path(name).stem)]
