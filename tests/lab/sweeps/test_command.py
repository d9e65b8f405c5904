import dataclasses
import json

import pyarrow.parquet as pq
import pytest

from robust_rlhf_jax.lab.sweeps import command, sweep_command
from robust_rlhf_jax.lab.sweeps.sealed import CELLS, Part, sealed

FILES = ["gap_vs_epsilon.png", "parts", "results.parquet", "summary.json"]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(scope="module")
def written(small_config, tmp_path_factory):
    out = tmp_path_factory.mktemp("sweep") / "new" / "out"
    sweep_command(small_config, out)
    return out


@pytest.mark.slow
def test_three_files_the_parts_and_nothing_else(written):
    assert names(written) == FILES
    assert names(written.parent) == ["out"]
    assert (written / "gap_vs_epsilon.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_parquet_holds_the_rows_of_the_sweep(written, small_sweep):
    table = pq.read_table(written / "results.parquet")
    assert table.to_pylist() == small_sweep[0].rows
    types = {field.name: str(field.type) for field in table.schema}
    assert types["epsilon"] == types["normalised_gap"] == types["value"] == "double"
    assert types["seed"] == "int64"


@pytest.mark.slow
def test_summary_says_how_to_repeat_the_sweep(written, small_config, small_sweep):
    summary = json.loads((written / "summary.json").read_text(encoding="utf-8"))
    given = {name: tuple(x) if isinstance(x, list) else x for name, x in summary["configuration"].items()}
    assert type(small_config)(**given) == small_config
    assert summary["cells"] == len(small_sweep[0].rows)
    assert summary["label_entropy_bits"] == pytest.approx(small_sweep[0].label_entropy, abs=1e-4)
    assert 0 < summary["seconds_to_first_batch"] <= summary["wall_seconds"]
    assert {"versions", "python", "device", "date"} <= set(summary)


@pytest.mark.slow
def test_what_is_printed(small_config, small_sweep, tmp_path, capsys):
    sweep_command(small_config, tmp_path)
    text = capsys.readouterr().out
    for word in ("random: normalised gap", "chain: normalised gap", "flip_confident", "48/48", "48 cells in"):
        assert word in text
    bits = small_sweep[0].label_entropy
    assert f"random {bits['random']:.2f}, chain {bits['chain']:.2f}" in " ".join(text.split())


def test_wrong_settings_write_nothing(small_config, tmp_path):
    with pytest.raises(ValueError, match="algorithms: 'best' is unknown"):
        sweep_command(dataclasses.replace(small_config, algorithms=("best",)), tmp_path / "out")
    assert names(tmp_path) == []


@pytest.mark.slow
def test_a_disk_that_fills_up_costs_no_earlier_results(small_config, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    earlier = sealed(Part(CELLS, "results", [{"seed": 1}]))
    (tmp_path / "results.parquet").write_bytes(earlier)
    monkeypatch.setattr(command, "gap_vs_epsilon", full)
    with pytest.raises(OSError, match="No space left"):
        sweep_command(small_config, tmp_path)
    assert names(tmp_path) == ["parts", "results.parquet"]
    assert (tmp_path / "results.parquet").read_bytes() == earlier


def test_results_that_no_sweep_wrote_are_not_replaced(small_config, tmp_path):
    (tmp_path / "results.parquet").write_text("mine")
    with pytest.raises(
        ValueError, match=r"results\.parquet was not written by a sweep .* give another --out"
    ):
        sweep_command(small_config, tmp_path)
    assert (tmp_path / "results.parquet").read_text() == "mine"


def test_results_that_were_cut_short_are_written_anew(small_config, tmp_path, monkeypatch):
    """`report` says to run the sweep again, and the sweep's own parts are there."""
    content = sealed(Part(CELLS, "results", [{"seed": 1}]))
    (tmp_path / "parts").mkdir()

    def stopped(*_):
        raise OSError("it began")

    monkeypatch.setattr(command, "run_sweep", stopped)
    for cut in (content[:20], content[:-1]):
        (tmp_path / "results.parquet").write_bytes(cut)
        with pytest.raises(OSError, match="it began"):
            sweep_command(small_config, tmp_path)


@pytest.mark.slow
def test_other_settings_in_the_folder_are_named(written, small_config):
    assert command._replaced(written, small_config) == ""
    said = command._replaced(written, dataclasses.replace(small_config, temperature=9.0, seeds=77))
    assert "a sweep with other seeds, temperature: they are replaced when this one ends" in " ".join(
        said.split()
    )
