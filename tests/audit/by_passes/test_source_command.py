"""`robust-rlhf audit --memory`: files, what is printed, and one sentence for what needs all pairs in memory."""

import csv
import json
import re

import numpy as np
import pytest

from robust_rlhf_jax.audit.by_passes import source_command as module
from robust_rlhf_jax.audit.by_passes.source_command import audit_source_command, point_to_passes
from robust_rlhf_jax.audit.command import audit_file
from robust_rlhf_jax.audit.config import AuditConfig, Reading, Writing
from robust_rlhf_jax.sources import open_pairs
from robust_rlhf_jax.sources.copies import check_copy

N = 800


@pytest.fixture
def folder(tmp_path):
    """Shards of which the first 80 pairs are planted; raters with a name that a spreadsheet would compute."""
    rng, theta = np.random.default_rng(5), np.array([2.0, -1.0, 0.5])
    x = rng.normal(size=(N, 3))
    z = x * np.where(rng.random(N) < 1 / (1 + np.exp(-x @ theta)), 1, -1)[:, None]
    z[:80] = -6 * theta + 0.1 * x[:80]
    place = tmp_path / "shards"
    place.mkdir()
    np.save(place / "chosen.npy", z.astype(np.float32))
    np.save(place / "rejected.npy", np.zeros((N, 3), np.float32))
    np.save(place / "raters.npy", np.array([f"=r{i % 16}<b>" for i in range(N)]))
    return place


def audit(path, out=None, top=3, **config):
    return audit_source_command(str(path), "1GB", AuditConfig(**config), Reading(), Writing(out), top)


@pytest.mark.slow
def test_files_say_the_same_as_the_model(folder, tmp_path, capsys):
    out = tmp_path / "out"
    found = audit(folder, out)
    shown = capsys.readouterr().out
    assert "are contradicted by the rest" in shown
    assert "Wrote suspects.csv, audit.json, audit.html, raters.csv" in shown
    record = json.loads((out / "audit.json").read_text())
    assert record["kept"] == found.keep.sum()
    assert record["said"] == found.sentences()
    with open(out / "suspects.csv") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["index"]) for row in rows] == found.worst().tolist()
    assert {int(row["index"]) for row in rows[:80]} == set(range(80))
    assert rows[0]["rater"].startswith("'=r")
    with open(out / "raters.csv") as file:
        assert len(list(csv.DictReader(file))) == 16
    page = (out / "audit.html").read_text()
    assert "=r3&lt;b&gt;" in page
    assert "<b>" not in page.split('<section id="raters">')[1].split("</section>")[0]
    assert "Accuracy and log-loss on held-out pairs" in page
    assert "robust-rlhf fit" in page
    assert "http" not in page.replace("http-equiv", "")


@pytest.mark.slow
def test_raters_of_an_earlier_audit_do_not_stay(folder, tmp_path):
    out = tmp_path / "out"
    audit(folder, out)
    (folder / "raters.npy").unlink()
    assert (out / "raters.csv").exists()
    audit(folder, out)
    assert sorted(file.name for file in out.iterdir()) == ["audit.html", "audit.json", "suspects.csv"]
    (out / "raters.csv").write_text("who,age\nAnn,7\n")
    audit(folder, out)
    assert (out / "raters.csv").read_text() == "who,age\nAnn,7\n"


@pytest.mark.slow
@pytest.mark.parametrize(("files", "name"), [(0, "pairs.parquet"), (1, "all"), (2, "all")])
def test_the_copy_that_the_page_names_can_be_written(folder, tmp_path, files, name):
    pa = pytest.importorskip("pyarrow")
    sides = {side: list(np.load(folder / f"{side}.npy")) for side in ("chosen", "rejected")}
    (tmp_path / "all").mkdir()
    for place in (
        (tmp_path / name,) if not files else [tmp_path / name / f"{i}.parquet" for i in range(files)]
    ):
        pytest.importorskip("pyarrow.parquet").write_table(pa.table(sides), place)
    audit(tmp_path / name, tmp_path / "out")
    page = (tmp_path / "out" / "audit.html").read_text()
    clean = re.search(r"--clean ([\w.]+)", page)[1]
    assert clean == ("clean" if files == 2 else "clean.parquet")
    check_copy(open_pairs(tmp_path / name), tmp_path / clean, "--clean")


def test_nothing_is_left_of_a_source_with_features_that_are_not_finite(folder, tmp_path):
    chosen = np.load(folder / "chosen.npy")
    chosen[9, 1] = np.nan
    np.save(folder / "chosen.npy", chosen)
    with pytest.raises(ValueError, match=r"pair 9 \(from 0\) has a feature that is not finite:"):
        audit(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("config", "reading", "writing", "says"),
    [
        (AuditConfig(inject=0.1), Reading(), Writing(), "takes no --inject"),
        (AuditConfig(), Reading(rater="who"), Writing(), "takes no --rater"),
        (
            AuditConfig(),
            Reading(),
            Writing(head="a"),
            r"takes no --head.*robust-rlhf fit .* --clean PATH writes",
        ),
    ],
)
def test_options_that_need_all_pairs_are_refused(folder, config, reading, writing, says):
    with pytest.raises(ValueError, match=says):
        audit_source_command(str(folder), "1GB", config, reading, writing)


def test_an_audit_in_memory_points_to_passes(folder, tmp_path, monkeypatch):
    point_to_passes(str(folder))
    point_to_passes("rail")
    monkeypatch.setattr(module, "host_bytes", lambda: 10_000)
    with pytest.raises(ValueError, match=r"needs 76.8 kB of memory: give --memory"):
        audit_file(str(folder), AuditConfig(), Reading(), Writing())
    differences = tmp_path / "differences"
    differences.mkdir()
    np.save(differences / "shard-0.npy", np.ones((5, 2), np.float32))
    monkeypatch.undo()
    with pytest.raises(ValueError, match="has shards of differences: give --memory"):
        audit_file(str(differences), AuditConfig(), Reading(), Writing())
