"""Preference files as they occur in the wild, invented after public schemas, with what each of them says."""

import importlib.util
from collections.abc import Iterable
from pathlib import Path

from . import few
from .case import Case, command_line, reading
from .container_cases import ARROW, FILES, NUMBERS
from .schema_cases import CHOSEN, RANKED, SIDES, TOOLS
from .sheet_cases import REFUSED, WORDS
from .variant_cases import VARIANTS


def _of_schemas() -> list[tuple[Case, ...]]:
    """The `CASES` of each test of a single schema, `tests/io/schemas/test_NAME.py`."""
    found = []
    for path in sorted(Path(__file__).parents[1].joinpath("schemas").glob("test_*.py")):
        # Under a name of its own: pytest imports the file, too.
        spec = importlib.util.spec_from_file_location(f"cases_of_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found.append(tuple(getattr(module, "CASES", ())))
    return found


_SCHEMAS = _of_schemas()

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
    *(case for cases in _SCHEMAS for case in cases),
)
BY_NAME = {case.name: case for case in CASES}


def few_fast(cases: Iterable[Case] = CASES) -> list:
    """Names of cases as parameters, of which about a third is fast: every schema, container and way of asking."""
    return few.few_fast(cases, frozenset(cases[0].name for cases in _SCHEMAS if cases))


__all__ = ["BY_NAME", "CASES", "Case", "command_line", "few_fast", "reading"]
