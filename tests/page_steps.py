"""The steps of a page that shows what its commands print: run as a reader would, and compared."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
NUMBER = r"\d+\.\d+"
SHELL = f"""
python() {{ "{sys.executable}" "$@"; }}
robust-rlhf() {{ python -c "from robust_rlhf_command import main; main()" "$@"; }}
"""


class Step(NamedTuple):
    """`code` in `language`, and what the page says that it prints."""

    language: str
    code: str
    told: str


def steps(page: Path) -> list[Step]:
    """The blocks of code that a block of output follows."""
    found = re.findall(
        r"```(bash|python)\n(.*?)```\n\n```text\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL
    )
    return [Step(*parts) for parts in found]


def run(step: Step, folder: Path, quiet: bool = True) -> str:
    """What a reader sees in a terminal of 80 columns, without space at the ends of lines.

    `quiet`: it writes nothing to stderr; else what others write there is not shown.

    Compiled as readers do: the tests' own flags move a few labels across the line between flagged and not.
    """
    as_tests_compile = ("JAX_DISABLE_MOST_OPTIMIZATIONS", "XLA_FLAGS")
    environment = {name: value for name, value in os.environ.items() if name not in as_tests_compile}
    words = (
        [sys.executable, "-c", step.code] if step.language == "python" else ["bash", "-c", SHELL + step.code]
    )
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, timeout=900,
        env=environment | {"PYTHONPATH": str(ROOT), "COLUMNS": "80"},
    )  # fmt: skip
    assert (done.returncode, done.stderr if quiet or done.returncode else "") == (0, "")
    return "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())


def same(printed: str, told: str, points: float = 0.005) -> None:
    """The same words and counts; numbers with a point may differ by `points`, and seconds by any."""
    told = told.strip()
    assert re.sub(NUMBER, "#", printed) == re.sub(NUMBER, "#", told)
    found, said = (
        [float(n) for n in re.findall(NUMBER, re.sub(rf"{NUMBER} s\b", "", text))] for text in (printed, told)
    )
    assert found == pytest.approx(said, abs=points)
