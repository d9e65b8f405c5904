"""Preference files as they occur in the wild, invented after public schemas, with what each of them says."""

from .case import Case, command_line, reading
from .container_cases import ARROW, FILES, NUMBERS
from .schema_cases import CHOSEN, RANKED, SIDES, TOOLS
from .sheet_cases import REFUSED, WORDS
from .variant_cases import VARIANTS

CASES: tuple[Case, ...] = (
    *CHOSEN,
    *SIDES,
    *TOOLS,
    *RANKED,
    *WORDS,
    *REFUSED,
    *FILES,
    *ARROW,
    *NUMBERS,
    *VARIANTS,
)
BY_NAME = {case.name: case for case in CASES}

__all__ = ["BY_NAME", "CASES", "Case", "command_line", "reading"]
