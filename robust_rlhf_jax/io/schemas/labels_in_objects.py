"""Labels that are objects, such as `{"winner": "A", "reason": "…"}`: the one entry that says who won."""

import dataclasses

from ..label_rules import OF_LOSERS
from ..labels import Rule, is_missing, number_in, word
from ..table import Table
from .base import inner_table, structured
from .sides import LABELS, plain_name

# What the entry is called beside names of labels.
CALLED = (*LABELS, "value", "chosen", "pick", "picked", "chosen_response", "model")


def out_of_objects(cells: list, rule: Rule) -> tuple[list, str]:
    """The cells that the objects of a label hold, and what they are called there; the cells themselves and "" where not
    all are objects, or several entries, or none, could say who won.

    An entry says so if it is called as labels are and its words name sides by `rule`, or if it is the only one.

    **Example:**

    >>> from robust_rlhf_jax.io.labels import word_rule
    >>> from robust_rlhf_jax.io.schemas.labels_in_objects import out_of_objects
    >>> out_of_objects([{"winner": "A", "reason": "short"}, {"winner": "B"}], word_rule(("text_a", "text_b")))
    (['A', 'B'], 'winner')
    """
    objects = [structured(cell) for cell in cells if not is_missing(cell)]
    if not objects or not all(isinstance(one, dict) for one in objects):
        return cells, ""
    keys = [key for key in _keys(objects) if _is_label(key)]
    worded = [key for key in keys if _names_sides([one.get(key) for one in objects], rule)]
    only = keys if len(_keys(objects)) == 1 and _single(objects, keys) else []
    found = worded or only
    if len(found) != 1:
        return cells, ""
    (key,) = found
    return [None if is_missing(cell) else structured(cell).get(key) for cell in cells], str(key)


def opened(table: Table, label: str, rule: Rule) -> Table:
    """The table with what the objects of a label hold as columns, the entry that says who won in the label's place; the
    table itself where they are no such objects."""
    cells, key = out_of_objects(table.cells(label), rule)
    if not key:
        return table
    inner = inner_table(table, label)
    beside = {name: inner.cells(name) for name in inner.names if name != key and name not in table.columns}
    return dataclasses.replace(table, columns=table.columns | beside | {label: cells})


def check_objects(label: str, cells: list) -> None:
    """**Raises:** ValueError for objects of which no single entry says who won."""
    keys = _keys_of_objects(cells)
    if keys:
        listed = ", ".join(map(str, keys[:6])) + (", …" if len(keys) > 6 else "")
        raise ValueError(
            f"column {label} holds objects ({listed}), and no single entry in them is known to say who won: write the "
            "one that does into a column winner of its own"
        )


def _keys_of_objects(cells: list) -> list[str]:
    """The names in a column of objects; [] where a cell is none."""
    objects = [structured(cell) for cell in cells if not is_missing(cell)]
    return _keys(objects) if objects and all(isinstance(one, dict) for one in objects) else []


def _keys(objects: list[dict]) -> list[str]:
    return list(dict.fromkeys(key for one in objects for key in one))


def _is_label(key: str) -> bool:
    return isinstance(key, str) and plain_name(key) in CALLED and not OF_LOSERS.search(key)


def _single(objects: list[dict], keys: list[str]) -> bool:
    return all(not isinstance(one.get(key), dict | list) for one in objects for key in keys)


def _names_sides(values: list, rule: Rule) -> bool:
    """Whether all that is there are words that name sides, or ties."""
    there = [value for value in values if not is_missing(value)]
    return bool(there) and all(
        isinstance(value, str) and number_in(word(value)) is None and rule.value(value) is not None
        for value in there
    )
