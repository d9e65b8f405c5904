"""The table of `benchmarks/README.md` names every script, and its commands name files that exist."""

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
INDEX = (FOLDER / "README.md").read_text(encoding="utf-8")
ROWS = [line for line in INDEX.splitlines() if line.startswith("|")]
SCRIPTS = sorted(path.name for path in FOLDER.glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_has_a_row(script):
    assert any(re.search(rf"[`/]{script}\b", row) for row in ROWS), (
        f"{script} has no row in {FOLDER.name}/README.md"
    )


def test_every_command_names_a_file_that_exists():
    named = re.findall(r"\bbenchmarks/(\w+\.py)", INDEX)
    named += re.findall(r"^\| `(\w+\.py)`", INDEX, re.MULTILINE)
    assert named
    assert sorted({name for name in named if name not in SCRIPTS}) == []


def test_every_link_leads_somewhere():
    links = re.findall(r"\]\(([^)]+)\)", INDEX)
    assert [link for link in links if not (FOLDER / link).exists()] == []
