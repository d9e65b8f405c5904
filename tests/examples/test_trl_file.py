"""The example for TRL takes the file that the tutorial writes, and names the right one where it gets another."""

import json
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("datasets")
ROOT = Path(__file__).resolve().parents[2]
TUTORIAL = (ROOT / "docs" / "tutorials" / "audit.md").read_text(encoding="utf-8")


@pytest.fixture
def trl_margin(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "examples")
    import trl_margin

    return trl_margin


@pytest.fixture
def rows(monkeypatch):
    """The rows of the tutorial's file."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    from text_faults import text_set

    return text_set(40, "label", 0.05, 0).rows


def written(path, rows):
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def test_its_command_names_the_file_that_the_tutorial_exports(trl_margin):
    (export,) = re.findall(r"--export (\S+)", TUTORIAL)
    for text in (TUTORIAL, trl_margin.__doc__):
        assert re.findall(r"trl_margin\.py (\S+\.jsonl)", text) == [export]


def test_the_tutorials_export_has_the_columns_that_trl_takes(trl_margin, rows, tmp_path):
    columns = re.findall(
        r"^\| `(\w+)` \|", TUTORIAL[TUTORIAL.index("**4.") : TUTORIAL.index("**5.")], re.MULTILINE
    )
    scored = [row | dict.fromkeys(columns, 0.0) | {"keep": i > 0} for i, row in enumerate(rows)]
    path = written(tmp_path / "scored.jsonl", scored)
    taken = trl_margin.as_trl_set(path, everything=True)
    assert set(taken.column_names) == set(trl_margin.KEPT)
    assert (len(taken), len(trl_margin.as_trl_set(path))) == (40, 39)


def test_a_cleaned_file_is_refused_in_a_sentence(trl_margin, rows, tmp_path, monkeypatch, capsys):
    path = written(tmp_path / "cleaned.jsonl", rows)
    monkeypatch.setattr(sys, "argv", ["trl_margin.py", str(path)])
    with pytest.raises(SystemExit):
        trl_margin.main()
    assert "has no column margin: give the file that --export wrote" in capsys.readouterr().err
