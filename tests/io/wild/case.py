"""One file as it occurs in the wild: how it is written, what it says, and what a reader needs to be told."""

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np

from . import stores, truths, worlds
from .truths import Vote

JSONL = stores.jsonl()


@dataclasses.dataclass(frozen=True)
class Case:
    """A file, made by `store` from the rows that `encode` makes of the items of `world`.

    | field | meaning |
    |---|---|
    | `world`, `options` | the function that invents the items, and its arguments |
    | `truth` | the preferences of the items |
    | `facts` | what of them the file holds beside the two sides and ties |
    | `loose`, `distinct` | see `truths.difference` |
    | `refused` | what the sentence says where a reader must ask, else "" |
    | `either` | a reader may ask or know |
    | `flags` | the command's flags that then help; None where none can |
    | `lost` | how many of the last rows cannot be read, even with the flags |
    """

    name: str
    encode: Callable[[list], list[dict]]
    store: Callable[[Path, list[dict]], Path] = JSONL
    world: Callable[..., list] = worlds.pairs
    options: dict = dataclasses.field(default_factory=dict)
    truth: Callable[[list], list[Vote]] = truths.by_item
    facts: tuple[str, ...] = ("prompt", "row")
    loose: bool = False
    distinct: bool = False
    refused: str = ""
    flags: dict[str, object] | None = dataclasses.field(default_factory=dict)
    lost: int = 0
    either: bool = False

    def items(self) -> list:
        return list(_invented(self.world, sum(map(ord, self.name)), tuple(self.options.items())))

    def write(self, folder: Path, items: list | None = None, shift: str = "") -> Path:
        """The file of `items`; `shift`: a column that is moved by one row."""
        rows = self.encode(self.items() if items is None else items)
        if shift:
            cells = [row[shift] for row in rows]
            rows = [row | {shift: cell} for row, cell in zip(rows, cells[1:] + cells[:1], strict=True)]
        return self.store(folder, rows)

    def votes(self, items: list | None = None) -> list[Vote]:
        """What the file says, without what is not known of it."""
        said = self.truth(self.items() if items is None else items)
        unknown = dict.fromkeys({"prompt", "row", "rater", "strength"} - set(self.facts))
        said = [dataclasses.replace(vote, **unknown) for vote in said]
        return said[: len(said) - self.lost]

    def differs(self, pairs, items: list | None = None) -> str:
        """In what a reading differs from the file, or ""."""
        return truths.difference(self.votes(items), truths.read_votes(pairs), self.loose, self.distinct)


@functools.cache
def _invented(world: Callable[..., list], seed: int, options: tuple[tuple[str, object], ...]) -> tuple:
    """Drawn once: to invent the items of a case takes as long as to read its file."""
    return tuple(world(np.random.default_rng(seed), **dict(options)))


def reading(flags: dict[str, object]) -> dict:
    """The command's flags as arguments of `load_pairs`."""
    from robust_rlhf_jax.io import Columns

    mine = {field.name for field in dataclasses.fields(Columns)}
    plain = {name.removeprefix("--").replace("-", "_"): value for name, value in flags.items()}
    columns = {name: value for name, value in plain.items() if name in mine}
    others = {name: value for name, value in plain.items() if name not in mine}
    return others | ({"columns": Columns(**columns)} if columns else {})


def command_line(flags: dict[str, object]) -> list[str]:
    """The same flags as words of the command."""
    words = []
    for name, value in flags.items():
        words += [name, *map(str, value if isinstance(value, tuple) else (value,))]
    return words
