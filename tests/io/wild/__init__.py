"""Preference files as they occur in the wild, invented after public schemas, with what each of them says."""

import importlib.util
from pathlib import Path

from .case import Case, command_line, reading
from .container_cases import ARROW, FILES, NUMBERS
from .schema_cases import CHOSEN, RANKED, SIDES, TOOLS
from .sheet_cases import REFUSED, WORDS
from .variant_cases import VARIANTS


def _of_schemas() -> list[Case]:
    """The `CASES` of the tests of single schemas, `tests/io/schemas/test_NAME.py`."""
    found = []
    for path in sorted(Path(__file__).parents[1].joinpath("schemas").glob("test_*.py")):
        # Under a name of its own: pytest imports the file, too.
        spec = importlib.util.spec_from_file_location(f"cases_of_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found += getattr(module, "CASES", ())
    return found


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
    *_of_schemas(),
)
BY_NAME = {case.name: case for case in CASES}

__all__ = ["BY_NAME", "CASES", "Case", "command_line", "reading"]
