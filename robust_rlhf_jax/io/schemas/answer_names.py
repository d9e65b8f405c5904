"""What the answers of one row are called, and which one a cell names: "B", "2", "Response B", a model, the text."""

import re
from collections import Counter
from typing import Any, NamedTuple

from ..labels import STRONG, THINGS, WEAK, is_missing, number_in, word
from ..table import Table
from .base import records, structured
from .rankings import ANSWER_KEYS, ANSWER_LISTS
from .sides import by_plain_name, holds_texts, open_sides

# Keys of what an answer in a list is called.
NAME_KEYS = ("name", "id", "model", "key", "label", "letter")
# The name of an answer in words that say no more: "response b", "b is much better".
IN_WORDS = re.compile(
    rf"^(?:the )?(?:(?:{THINGS}|item) ?)?(?P<name>\w+?)(?: (?:is|was)(?: (?:the|{STRONG}|{WEAK}))?"
    r" (?:better|best|preferred)| wins| won)?$"
)
LETTERS = "abcdefghij"
# Keys of what is no name: a text as it is, its words, a place.
EXACT, ALIKE, PLACE = "exact", "alike", "place"
PARTS = re.compile(r"[\s_.\-]|(?<=\D)(?=\d)|(?<=[a-z])(?=[A-Z]$)")


class Answers(NamedTuple):
    """`columns`: one for each answer, or one of lists, `listed`; `names`: how each column is told from the others."""

    columns: tuple[str, ...]
    listed: bool
    names: tuple[str, ...]

    @property
    def numbered(self) -> bool:
        """Whether the columns are numbered, so that a number in a cell is the end of a column's name."""
        return not self.listed and all(number_in(name) is not None for name in self.names)

    def of(self, table: Table) -> list[list]:
        """The answers of each row: texts or messages, and None where one is missing."""
        if self.listed:
            return [_entries(cell) for cell in table.cells(self.columns[0])]
        rows = zip(*(table.cells(name) for name in self.columns), strict=True)
        return [[None if is_missing(cell) else cell for cell in row] for row in rows]

    def called(
        self, table: Table, numbers: dict[str, int], texts_alone: bool = False
    ) -> list[dict[Any, int]]:
        """{name: answer} of each row, with `_texts`; `numbers` count those whose columns and objects have none of their
        own. `texts_alone`: cells repeat texts, and no letter or number of an answer is meant.
        """
        names = {letter: i for i, letter in enumerate(LETTERS)} if self.listed else {}
        for called in () if self.listed else (self.columns, self.names):
            names |= {_word(name): i for i, name in enumerate(called)}
        names = {} if texts_alone else names | numbers
        keys = [{}] * table.n_rows if texts_alone else self.keys(table)
        return [
            {
                name: i
                for name, i in (_texts(texts) | names | keys[row]).items()
                if i < len(texts) and texts[i] is not None
            }
            for row, texts in enumerate(self.of(table))
        ]

    def keys(self, table: Table) -> list[dict[str, int]]:
        """{name: answer} of each row, by what the objects of a list are called."""
        if not self.listed:
            return [{}] * table.n_rows
        return [_keys_of(records(cell)) for cell in table.cells(self.columns[0])]


def answers_of(table: Table, fewest: int) -> Answers | None:
    """The columns of answers that are called alike, `fewest` or more; or the column of lists of them."""
    columns = open_sides(table, ())
    if len(columns) >= fewest:
        return Answers(columns, False, tuple(PARTS.split(name)[-1] for name in columns))
    lower = by_plain_name(table)
    lists = (lower[name] for name in ANSWER_LISTS if name in lower)
    return next((Answers((name,), True, ()) for name in lists if len(_entries(table.first(name))) > 1), None)


def _word(name: str) -> str:
    """A column's name as cells have it: 01 as 1."""
    return str(int(name)) if name.isdecimal() else word(name)


def which(cell: Any, called: dict[Any, int]) -> int | None:
    """The answer that a cell names, or None: by a name or by its text, if those are not two; else by its words alone,
    whatever the size of their letters, if no other answer has them.
    """
    if is_missing(cell):
        return None
    said = word(cell)
    match = IN_WORDS.match(said)
    by_name = called[said] if said in called else called.get(match["name"]) if match else None
    by_text = called.get((EXACT, str(cell).strip()))
    if by_name is not None and by_text is not None:
        return by_name if by_name == by_text else None
    found = by_text if by_name is None else by_name
    return called.get((ALIKE, said)) if found is None else found


def repeats_text(cell: Any, called: dict[Any, int]) -> bool:
    """Whether a cell is the text of an answer."""
    return (EXACT, str(cell).strip()) in called


def beside(table: Table, answers: Answers, stems: tuple[str, ...]) -> tuple[str, ...]:
    """The columns, one for each answer, called after a stem and the answer's name: rank_a, rank_b and rank_c; or ()."""
    lower = by_plain_name(table)
    for stem in stems:
        forms = [
            (f"{stem}_{who}", f"{stem}{who}", f"{who}_{stem}") for who in map(str.casefold, answers.names)
        ]
        columns = [next((lower[n] for n in names if n in lower), "") for names in forms]
        if columns and all(columns):
            return tuple(columns)
    return ()


def _entries(cell: Any) -> list:
    """The answers that a list holds: texts, or those in objects; [] if none."""
    found, objects = structured(cell), records(cell)
    if objects and isinstance(found, list | dict):
        key = next((k for k in ANSWER_KEYS if k in objects[0]), None)
        return [] if key is None else [entry.get(key) for entry in objects]
    messages = isinstance(found, list) and all(
        isinstance(entry, str | list) and holds_texts(entry) for entry in found
    )
    return found if messages else []


def _texts(answers: list) -> dict[tuple[str, Any], int]:
    """Answers by their texts, the first of equal ones; by their words where no other has these; and by their place."""
    texts = [(i, text) for i, text in enumerate(answers) if isinstance(text, str) and text.strip()]
    words = Counter(word(text) for _, text in texts)
    exact = {(EXACT, text.strip()): i for i, text in reversed(texts)}
    alike = {(ALIKE, word(text)): i for i, text in texts if words[word(text)] == 1}
    return {(PLACE, i): i for i in range(len(answers))} | alike | exact


def _keys_of(objects: list[dict]) -> dict[str, int]:
    """What the objects of a list are called, by every key whose values differ; those of an earlier key come first."""
    found: dict[str, int] = {}
    for key in NAME_KEYS:
        values = [entry.get(key) for entry in objects]
        if key == "label" and any(number_in(value) is not None for value in values):
            continue  # says which is the best
        names = {word(value): i for i, value in enumerate(values) if value is not None}
        if objects and len(names) == len(objects):
            found = names | found
    return found
