"""What an instruction is about, in a column of its own (Alpaca): part of the prompt."""

import dataclasses
from typing import Any

from ..columns import Columns
from ..labels import is_missing
from ..table import Table
from .sides import named, plain_name, prompt_named


def input_of(table: Table, asked: Columns) -> tuple[str, str] | None:
    """(the column of instructions, that of their inputs), if the instructions are the prompts and the caller names no
    other."""
    prompt, beside = prompt_named(table), named(table, ("input",))
    if prompt is None or beside is None or plain_name(prompt) != "instruction" or asked.prompt is not None:
        return None
    return None if beside in asked.names().values() else (prompt, beside)


def with_inputs(table: Table, asked: Columns) -> Table:
    """The table with each input after its instruction, and without the column of inputs."""
    found = input_of(table, asked)
    if found is None:
        return table
    joined = [_joined(*cells) for cells in zip(*(table.cells(name) for name in found), strict=True)]
    columns = {name: column for name, column in table.columns.items() if name != found[1]}
    return dataclasses.replace(table, columns=columns | {found[0]: joined})


def _joined(instruction: Any, beside: Any) -> Any:
    """Of texts alone."""
    texts = isinstance(instruction, str) and isinstance(beside, str | int | float)
    return f"{instruction}\n{beside}" if texts and not is_missing(beside) else instruction
