"""The file of a fitted reward, whole or not at all."""

import json
import os
import pickle
import struct
import zipfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.rewards import RewardModel
from robust_rlhf_jax.rewards.model import VERSION

from .test_model import EVIDENCE, model


def same_bits(a, b):
    def same(one, other):
        one, other = np.asarray(one), np.asarray(other)
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert one.tobytes() == other.tobytes()

    jax.tree.map(same, a, b)


@pytest.mark.parametrize("name", ["reward.npz", "reward", "reward.model.bin"])
def test_files_keep_every_bit(name, tmp_path):
    saved = model(**EVIDENCE, doubted=jnp.eye(3)[:1], theta=jnp.asarray([jnp.nan, -0.0, 1e-42]))
    saved.save(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    same_bits(RewardModel.load(tmp_path / name), saved)
    same_bits(RewardModel.load(str(tmp_path / name)), saved)
    same_bits(saved.load(tmp_path / name), saved)


@pytest.mark.slow
def test_double_precision_keeps_every_bit(x64, tmp_path):
    saved = model(theta=jnp.asarray(np.random.default_rng(0).normal(size=3)))
    assert saved.theta.dtype == jnp.float64
    saved.save(tmp_path / "reward.npz")
    same_bits(RewardModel.load(tmp_path / "reward.npz"), saved)


def headless(path):
    np.savez(path, theta=np.ones(3))


def object_array(path):
    np.savez(path, header=np.array([{}], dtype=object))


def half_a_model(path):
    header = json.dumps({"format": "robust_rlhf_jax.RewardModel", "version": VERSION})
    np.savez(path, header=np.asarray(header), theta=np.ones(3))


def cut_off(path):
    model().save(path)
    path.write_bytes(path.read_bytes()[:-500])


def bare_array(path):
    with open(path, "wb") as file:
        np.save(file, np.ones(3))


def with_header(text):
    """An archive whose first array has that header."""
    padded = text.ljust(117).encode() + b"\n"

    def write(path):
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("header.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + padded + bytes(24))

    return write


WRONG = {
    "array whose header never ends": with_header("{'descr': '<f8'"),
    "array of no type": with_header("{'descr': ',,', 'fortran_order': False, 'shape': (3,), }"),
    "pickle": lambda path: path.write_bytes(pickle.dumps({"theta": [1.0]})),
    "text": lambda path: path.write_text("theta,1.0\n"),
    "empty": lambda path: path.write_bytes(b""),
    "archive without header": headless,
    "header that is no text": object_array,
    "header that is no JSON": lambda path: np.savez(path, header=np.asarray("{theta")),
    "missing fields": half_a_model,
    "cut off": cut_off,
    "bare array": bare_array,
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_file_that_is_no_model_is_refused(kind, tmp_path):
    path = tmp_path / "wrong.npz"
    WRONG[kind](path)
    with pytest.raises(
        ValueError, match=r"wrong\.npz is no reward model \(.*\): give a file that save wrote\.$"
    ):
        RewardModel.load(path)


def test_a_text_is_not_said_to_be_loadable_unsafely(tmp_path):
    path = tmp_path / "wrong.npz"
    WRONG["text"](path)
    with pytest.raises(ValueError, match=r"is no reward model \(not an \.npz file\)"):
        RewardModel.load(path)


class Runs:
    """What unpickles by making a folder."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_no_code_in_a_file_is_run(tmp_path):
    np.savez(tmp_path / "wrong.npz", header=np.array([Runs(tmp_path / "made")], dtype=object))
    with pytest.raises(ValueError, match="is no reward model"):
        RewardModel.load(tmp_path / "wrong.npz")
    assert not (tmp_path / "made").exists()


def test_another_version_is_refused(tmp_path):
    path = tmp_path / "reward.npz"
    model().save(path)
    with np.load(path) as file:
        arrays = dict(file)
    for header in (
        {"format": "robust_rlhf_jax.RewardModel", "version": 1},
        {"format": "other", "version": 4},
    ):
        np.savez(path, **(arrays | {"header": np.asarray(json.dumps(header))}))
        with pytest.raises(ValueError, match=r"written by another version .*: fit the reward again\.$"):
            RewardModel.load(path)


def test_no_file_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        RewardModel.load(tmp_path / "absent.npz")
    with pytest.raises(OSError, match="absent"):
        model().save(tmp_path / "absent" / "reward.npz")
    assert not list(tmp_path.iterdir())


def test_a_failed_write_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "reward.npz"
    model().save(path)
    before = path.read_bytes()

    def full(file, **arrays):
        file.write(b"half")
        raise OSError("No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="No space left"):
        model(theta=jnp.zeros(3)).save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["reward.npz"]
    assert path.read_bytes() == before
