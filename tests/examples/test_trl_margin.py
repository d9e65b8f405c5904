"""The margins of an export reach the loss of TRL's reward trainer. Needs the extra `trl`."""

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("trl")
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
from trl_margin import as_trl_set, train


@pytest.fixture
def export(tmp_path):
    rows = [
        {
            "prompt": f"Question {i} ?", "chosen": f"good answer {i}", "rejected": f"bad answer {i}", "id": i,
            "suspicion": 0.1, "keep": i != 3, "suggested_label": "chosen", "weight": 1.0, "margin": -float(i == 3),
        }
        for i in range(16)
    ]  # fmt: skip
    path = tmp_path / "export.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def test_dropped_rows_stay_out(export):
    rows = as_trl_set(export)
    assert len(rows) == 15
    assert set(rows.column_names) == {"prompt", "chosen", "rejected", "margin"}


def test_margins_arrive_and_change_the_loss(export):
    rows = as_trl_set(export, everything=True)
    carried = train(rows, steps=2)
    assert sorted(float(m) for batch in carried["margins"] for m in batch) == [-1.0, *[0.0] * 15]
    plain = train(rows.remove_columns("margin"), steps=2)
    assert all(batch is None for batch in plain["margins"])
    assert sum(carried["losses"]) < sum(plain["losses"])
