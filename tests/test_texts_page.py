"""The tutorial on the bundled votes prints what it says: `docs/texts.md`."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "texts.md").read_text(encoding="utf-8")
# (language, what is run, what it prints)
STEPS = re.findall(r"```(bash|python)\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
NUMBER = r"\d+\.\d+"


def run(language: str, code: str, folder: Path) -> str:
    """What a reader sees in a terminal of 80 columns, without space at the ends of lines."""
    command = (
        f'robust-rlhf() {{ "{sys.executable}" -c "from robust_rlhf_command import main; main()" "$@"; }}'
    )
    words = [sys.executable, "-c", code] if language == "python" else ["bash", "-c", f"{command}\n{code}"]
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, timeout=900,
        env=os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "80"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())


def same(printed: str, told: str) -> None:
    """The same words and counts; numbers with a point, such as seconds, may differ in the last digit of an accuracy."""
    told = told.strip()
    assert re.sub(NUMBER, "#", printed) == re.sub(NUMBER, "#", told)
    found, said = (
        [float(n) for n in re.findall(NUMBER, re.sub(rf"{NUMBER} s\b", "", text))] for text in (printed, told)
    )
    assert found == pytest.approx(said, abs=0.005)


def test_the_page_has_three_steps():
    assert [language for language, *_ in STEPS] == ["bash", "bash", "python"]


def test_the_file_is_described_as_the_page_says(tmp_path):
    language, code, told = STEPS[0]
    same(run(language, code, tmp_path), told)


@pytest.mark.slow
def test_the_whole_way_prints_what_the_page_says(tmp_path):
    for language, code, told in STEPS[1:]:
        same(run(language, code, tmp_path), told)
    assert (tmp_path / "cleaned.jsonl.xz").exists()


def test_the_authors_and_the_licence_of_the_votes_are_named():
    for said in ("Habernal and Gurevych", "UKPConvArg1", "CC-BY-4.0"):
        assert said in PAGE
