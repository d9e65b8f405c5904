"""`robust-rlhf fit`: files, and one sentence for bad input."""

import json

import numpy as np
import pytest

from robust_rlhf_jax.heads.command import FILES, fit_command
from robust_rlhf_jax.io import RewardHead
from robust_rlhf_jax.rewards import RewardModel


def folder_of_sides(tmp_path, n=400, k=3):
    rng = np.random.default_rng(5)
    x, theta = rng.normal(size=(n, k)), np.array([2.0, -1.0, 0.5])
    z = x * np.where(rng.random(n) < 1 / (1 + np.exp(-x @ theta)), 1, -1)[:, None]
    np.save(tmp_path / "chosen.npy", z.astype(np.float16))
    np.save(tmp_path / "rejected.npy", np.zeros_like(z, np.float16))
    return tmp_path


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


def test_a_source_that_is_none_ends_in_one_sentence(tmp_path):
    (tmp_path / "pairs.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="is no source of pairs"):
        fit_command(tmp_path / "pairs.csv", out=tmp_path / "out", quiet=True)


def test_bad_memory_loses_nothing(tmp_path):
    with pytest.raises(ValueError, match="give a number of bytes"):
        fit_command(folder_of_sides(tmp_path), memory="lots", out=tmp_path / "out", quiet=True)
    assert not (tmp_path / "out").exists()
