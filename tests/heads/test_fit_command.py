"""`robust-rlhf fit`: files, and one sentence for bad input."""

import json
import subprocess
import sys

import numpy as np
import pytest
from small_sweep import COMMAND
from two_ray_nodes import needs_ray

from robust_rlhf_jax.heads.command import FILES, fit_command
from robust_rlhf_jax.io import RewardHead
from robust_rlhf_jax.ray_connection import LOOPBACK, MISSING
from robust_rlhf_jax.rewards import RewardModel


def folder_of_sides(tmp_path, n=400, k=3):
    rng = np.random.default_rng(5)
    x, theta = rng.normal(size=(n, k)), np.array([2.0, -1.0, 0.5])
    z = x * np.where(rng.random(n) < 1 / (1 + np.exp(-x @ theta)), 1, -1)[:, None]
    np.save(tmp_path / "chosen.npy", z.astype(np.float16))
    np.save(tmp_path / "rejected.npy", np.zeros_like(z, np.float16))
    return tmp_path


@pytest.mark.slow
def test_files_say_the_same(tmp_path, capsys):
    out = tmp_path / "out"
    model = fit_command(folder_of_sides(tmp_path), out=out, quiet=True)
    assert sorted(path.name for path in out.iterdir()) == sorted(FILES)
    shown = capsys.readouterr().out
    assert "400 pairs of 3 features" in shown
    assert "No evidence of corruption" in shown
    loaded = RewardModel.load(out / FILES[0])
    np.testing.assert_array_equal(loaded.theta, model.theta)
    np.testing.assert_array_equal(np.load(out / "weights.npy"), np.ones(400, np.float32))
    np.testing.assert_allclose(RewardHead.load(out / FILES[1]).theta, model.theta)
    facts = json.loads((out / "fit.json").read_text())
    assert facts["pairs"] == 400
    assert facts["features"] == 3
    assert facts["said"] == model.message


@pytest.mark.parametrize(
    ("kept", "said"), [("lengths", r"^stopped: .* goes on after .*state\.$"), ("sample", "^$")]
)
def test_a_stopped_fit_says_how_to_go_on_where_it_can(tmp_path, monkeypatch, kept, said):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("robust_rlhf_jax.heads.command.fit_reward", stopped)
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / f"{kept}.npz").touch()
    (tmp_path / "pairs").mkdir()
    with pytest.raises(KeyboardInterrupt, match=said):
        fit_command(
            folder_of_sides(tmp_path / "pairs"),
            checkpoint=tmp_path / "state",
            out=tmp_path / "out",
            quiet=True,
        )
    assert not (tmp_path / "out").exists()


def test_a_source_that_is_none_ends_in_one_sentence(tmp_path):
    (tmp_path / "pairs.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="is no source of pairs"):
        fit_command(tmp_path / "pairs.csv", out=tmp_path / "out", quiet=True)


def test_a_damaged_featuriser_is_said_before_the_fit(tmp_path, robust_rlhf, monkeypatch):
    folder = folder_of_sides(tmp_path)
    (folder / "featuriser.safetensors").write_bytes(b"nothing")
    monkeypatch.setattr("robust_rlhf_jax.heads.command.fit_reward", None)
    status, _, errors = robust_rlhf("fit", folder, "--out", tmp_path / "out")
    assert status == 2
    assert "featuriser.safetensors is no reward head" in errors


@pytest.mark.parametrize("option", ["--out", "--checkpoint"])
def test_files_do_not_come_among_those_of_the_pairs(tmp_path, robust_rlhf, option):
    folder = folder_of_sides(tmp_path)
    before = sorted(folder.iterdir())
    status, _, errors = robust_rlhf("fit", folder, "--out", tmp_path / "out", option, folder)
    assert (status, errors) == (
        2,
        f"robust-rlhf: {option} {folder} is the folder of the pairs: give another one.\n",
    )
    assert sorted(folder.iterdir()) == before


def test_bad_memory_loses_nothing(tmp_path):
    with pytest.raises(ValueError, match="give a number of bytes"):
        fit_command(folder_of_sides(tmp_path), memory="lots", out=tmp_path / "out", quiet=True)
    assert not (tmp_path / "out").exists()


def folder_beyond(tmp_path, n=6_000, k=12):
    """Pairs that 3 MB do not hold, a tenth of which is planted."""
    rng = np.random.default_rng(0)
    x, theta = rng.normal(size=(n, k)), rng.normal(size=k)
    z = x * np.where(rng.random(n) < 1 / (1 + np.exp(-x @ theta)), 1, -1)[:, None]
    z[: n // 10] = -6 * theta / np.linalg.norm(theta)
    np.save(tmp_path / "pairs.npy", z.astype(np.float16))
    return tmp_path / "pairs.npy"


@needs_ray
@pytest.mark.slow
def test_ray_writes_the_same_bytes(tmp_path, monkeypatch):
    folder_beyond(tmp_path)
    monkeypatch.chdir(tmp_path)
    told = []
    for engine in ("local", "ray"):
        words = ["fit", "pairs.npy", "--memory", "3MB", "--engine", engine, "--out", engine]
        ended = subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=200)
        assert (ended.returncode, ended.stderr) == (0, "")
        told.append(ended.stdout.splitlines()[1:3])
    assert "of 6,000 pairs (10." in told[0][0]
    assert told[0] == told[1]
    for name in ("weights.npy", "suspicion.npy"):
        assert (tmp_path / "local" / name).read_bytes() == (tmp_path / "ray" / name).read_bytes()
    one, other = (RewardModel.load(tmp_path / engine / FILES[0]) for engine in ("local", "ray"))
    np.testing.assert_array_equal(one.theta, other.theta)


def test_an_address_is_for_ray(tmp_path, robust_rlhf):
    status, _, errors = robust_rlhf("fit", folder_of_sides(tmp_path), "--ray-address", "127.0.0.1:1")
    assert (status, errors) == (2, "robust-rlhf: --ray-address 127.0.0.1:1 is for --engine ray: add that.\n")


def test_without_ray_one_sentence_names_the_extra(tmp_path, robust_rlhf, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    for name in (
        "RAY_USAGE_STATS_ENABLED",
        "RAY_IGNORE_UNHANDLED_ERRORS",
        "RAY_AUTH_MODE",
        "RAY_AUTH_TOKEN",
        LOOPBACK,
    ):
        monkeypatch.setenv(name, "")  # what the command sets goes with the test
        monkeypatch.delenv(name)
    words = ("fit", folder_of_sides(tmp_path), "--engine", "ray", "--out", tmp_path / "out")
    status, _, errors = robust_rlhf(*words)
    assert (status, errors) == (2, f"robust-rlhf: {MISSING}\n")
    assert not (tmp_path / "out").exists()


def planted_sides(n=400, k=3):
    """Sides of which the first 40 pairs are planted far out against what the others prefer."""
    rng, theta = np.random.default_rng(5), np.array([2.0, -1.0, 0.5])
    x = rng.normal(size=(n, k))
    z = x * np.where(rng.random(n) < 1 / (1 + np.exp(-x @ theta)), 1, -1)[:, None]
    z[:40] = -6 * theta + 0.1 * x[:40]
    return z.astype(np.float32), np.zeros_like(z, np.float32)


@pytest.mark.slow
def test_what_a_trainer_takes_of_parquet(tmp_path):
    from parquet_of_lists import parquet_file

    from robust_rlhf_jax.heads.copies import Copies

    pq = pytest.importorskip("pyarrow.parquet")
    chosen, rejected = planted_sides()
    columns = {"id": np.arange(400), "chosen": chosen, "rejected": rejected}
    path = parquet_file(tmp_path / "pairs.parquet", columns, rows=50)
    copies = Copies(tmp_path / "all.parquet", tmp_path / "clean.parquet")
    model = fit_command(path, out=tmp_path / "out", quiet=True, copies=copies)
    keep = np.load(tmp_path / "out" / "keep.npy")
    np.testing.assert_array_equal(keep, np.asarray(model.weights) >= 0.5)
    assert not keep[:40].any()
    assert keep[40:].mean() > 0.99
    export, clean = pq.read_table(copies.export), pq.read_table(copies.clean)
    assert export.column_names == ["id", "chosen", "rejected", "weight", "suspicion", "keep"]
    np.testing.assert_array_equal(export["weight"].to_numpy(), model.weights)
    np.testing.assert_array_equal(export["suspicion"].to_numpy(), model.suspicion)
    assert clean.column_names == ["id", "chosen", "rejected", "weight", "suspicion"]
    np.testing.assert_array_equal(clean["id"].to_numpy(), np.flatnonzero(keep))
    assert json.loads((tmp_path / "out" / "fit.json").read_text())["kept"] == keep.sum()


@pytest.mark.parametrize("name", ["pairs", "pairs.parquet"])
def test_shards_have_no_export_whatever_its_name(tmp_path, name):
    from robust_rlhf_jax.heads.copies import Copies
    from robust_rlhf_jax.sources import open_pairs

    (tmp_path / "all").mkdir()
    for side in ("chosen", "rejected"):
        np.save(tmp_path / "all" / f"{side}.npy", np.eye(3, dtype=np.float32))
    with pytest.raises(ValueError, match="shards have no columns to add to"):
        Copies(export=tmp_path / name).check(open_pairs(tmp_path / "all"))


@pytest.mark.slow
def test_what_a_trainer_takes_of_shards(tmp_path):
    from robust_rlhf_jax.heads.copies import Copies
    from robust_rlhf_jax.sources import open_pairs

    (tmp_path / "all").mkdir()
    for name, side in zip(("chosen", "rejected"), planted_sides(), strict=True):
        np.save(tmp_path / "all" / f"{name}.npy", side)
    with pytest.raises(ValueError, match="shards have no columns to add to"):
        fit_command(tmp_path / "all", out=tmp_path / "out", copies=Copies(export=tmp_path / "b"))
    assert not (tmp_path / "out").exists()
    fit_command(tmp_path / "all", out=tmp_path / "out", quiet=True, copies=Copies(clean=tmp_path / "clean"))
    keep = np.load(tmp_path / "out" / "keep.npy")
    assert open_pairs(tmp_path / "clean").n_pairs == keep.sum() < 361
    np.testing.assert_array_equal(np.load(tmp_path / "clean" / "rows.npy"), np.flatnonzero(keep))
    weights = np.load(tmp_path / "out" / "weights.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "clean" / "weights.npy"), weights[keep])
