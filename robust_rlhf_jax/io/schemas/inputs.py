"""What an instruction or a question is about, in a column of its own (Alpaca, Dolly, SQuAD): part of the prompt."""

import dataclasses
from typing import Any

from ..columns import Columns
from ..labels import is_missing
from ..table import Table
from .numbers import mostly_numbers
from .rankings import ANSWER_LISTS
from .sides import chosen_sides, named, open_sides, plain_name, prompt_named

# What stands beside prompts that are called so. A context beside one answer a row may be that of the answer.
ABOUT = {"instruction": ("input", "context"), "question": ("context",)}


def input_of(table: Table, asked: Columns) -> tuple[str, str] | None:
    """(the column of instructions or questions, that of what they are about), if those are the prompts and the caller
    names no other."""
    prompt = prompt_named(table)
    beside = None if prompt is None else named(table, ABOUT.get(plain_name(prompt), ()))
    if prompt is None or beside is None or asked.prompt is not None or beside in asked.names().values():
        return None
    of_answers = _several_answers(table) and not mostly_numbers(table.some(beside))
    return (prompt, beside) if plain_name(beside) == "input" or of_answers else None


def _several_answers(table: Table) -> bool:
    """Whether a row has more than one answer."""
    return bool(chosen_sides(table) or open_sides(table, ()) or named(table, ANSWER_LISTS))


def with_inputs(table: Table, asked: Columns) -> Table:
    """The table with each input after its instruction, and without the column of inputs."""
    found = input_of(table, asked)
    if found is None:
        return table
    joined = [_joined(*cells) for cells in zip(*(table.cells(name) for name in found), strict=True)]
    columns = {name: column for name, column in table.columns.items() if name != found[1]}
    return dataclasses.replace(table, columns=columns | {found[0]: joined})


def _joined(instruction: Any, beside: Any) -> Any:
    """Both as one text, if they are texts."""
    texts = isinstance(instruction, str) and isinstance(beside, str | int | float)
    return f"{instruction}\n{beside}" if texts and not is_missing(beside) else instruction
