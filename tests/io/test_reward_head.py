"""Files of reward heads whose featuriser nobody knows."""

import os
import stat

import numpy as np
import pytest

from robust_rlhf_jax.io import RewardHead


class Own:
    names = ("a",)

    def __init__(self, **settings):
        self.of = settings

    def settings(self):
        return self.of

    def arrays(self):
        return {"idf": np.ones(1, np.float32)}


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (
            {"featuriser": "counted"},
            "'counted', which is none of format, hashed, model: save the head without it, and",
        ),
        ({}, "None, which is none of"),
    ],
)
def test_an_unknown_featuriser_is_refused_in_one_sentence(tmp_path, settings, says):
    path = tmp_path / "head.safetensors"
    RewardHead(("a",), np.ones(1), Own(**settings)).save(path)
    with pytest.raises(ValueError, match=says):
        RewardHead.load(path)
    RewardHead(("a",), np.ones(1)).save(path)
    assert RewardHead.load(path).reward(np.full((1, 1), 2.0)).tolist() == [2.0]


def test_columns_of_a_frame_are_taken_by_name():
    pd = pytest.importorskip("pandas")
    head = RewardHead(("price", "time"), np.array([1.0, -2.0]))
    turned = pd.DataFrame({"time": [1.0], "id": [7], "price": [3.0]})
    assert head.reward(turned).tolist() == [1.0]
    assert head.reward(turned.iloc[0]) == 1.0
    assert head.reward(turned[["time", "price"]].add_prefix("chosen_")).tolist() == [1.0]
    assert RewardHead(("f0", "f1"), head.theta).reward(turned[["price", "time"]]).tolist() == [1.0]
    with pytest.raises(ValueError, match="the data frame has no column 'time'"):
        head.reward(turned[["time", "price"]].rename(columns={"time": "hours"}))


def test_a_damaged_head_is_refused_in_one_sentence(tmp_path):
    path = tmp_path / "head.safetensors"
    RewardHead(("a",), np.ones(1)).save(path)
    whole = path.read_bytes()
    for part in (b'"names"', b'"facts"', b'"theta"', b"null"):
        path.write_bytes(
            whole.replace(part, part.replace(b"a", b"A").replace(b"l", b"L").replace(b"s", b"S"))
        )
        with pytest.raises(ValueError, match=r"head.safetensors is damaged \("):
            RewardHead.load(path)


def test_a_head_is_made_of_lists_and_of_half_precision():
    head = RewardHead(["a", "b"], [1, 2])
    assert head.names == ("a", "b")
    assert head.reward([[1, 2]]).tolist() == [5.0]
    half = RewardHead(("a",), np.array([2.0], np.float16))  # whose products would be infinite
    assert half.reward(np.array([[40_000.0]], np.float16)).tolist() == [80_000.0]
    with pytest.raises(ValueError, match=r"theta has shape \(2,\): give a number for each of 1 names"):
        RewardHead(("a",), np.ones(2))


@pytest.mark.skipif(os.name == "nt", reason="needs permissions of a group and of others")
def test_a_head_may_be_read_by_those_who_may_read_other_files(tmp_path):
    RewardHead(("a",), np.ones(1)).save(tmp_path / "head.safetensors")
    (tmp_path / "other").touch()
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("head.safetensors", "other")]
    assert modes[0] == modes[1]


def test_a_full_disk_is_an_error_of_the_system(tmp_path, monkeypatch):
    def full(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(OSError, match="No space left on device") as caught:
        RewardHead(("a",), np.ones(1)).save(tmp_path / "head.safetensors")
    assert caught.value.filename == str(tmp_path / "head.safetensors")
