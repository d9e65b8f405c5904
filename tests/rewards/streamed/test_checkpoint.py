"""States of a fit: whole, of this fit, and as they were written."""

import numpy as np

from robust_rlhf_jax.rewards.streamed.checkpoint import Checkpoint


def test_a_state_comes_back_as_it_was(tmp_path):
    states = Checkpoint(tmp_path / "new", {"fit": 1})
    states.save("one", x=np.arange(6.0).reshape(2, 3), empty=np.zeros((0, 4)), passes=np.asarray(3))
    found = states.load("one")
    assert found is not None
    assert sorted(found) == ["empty", "passes", "x"]
    np.testing.assert_array_equal(found["x"], np.arange(6.0).reshape(2, 3))
    assert found["empty"].shape == (0, 4)
    assert int(found["passes"]) == 3


def test_a_state_of_another_fit_is_none(tmp_path):
    Checkpoint(tmp_path, {"fit": 1}).save("one", x=np.ones(2))
    assert Checkpoint(tmp_path, {"fit": 2}).load("one") is None


def test_damage_anywhere_is_none(tmp_path):
    states = Checkpoint(tmp_path, {})
    states.save("one", x=np.ones(50))
    path = tmp_path / "one.npz"
    content = path.read_bytes()
    for place in (0, len(content) // 3, len(content) // 2):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        assert states.load("one") is None
    path.write_bytes(content[:100])
    assert states.load("one") is None
    path.write_bytes(content)
    assert states.load("one") is not None


def test_without_a_folder_nothing_is_kept():
    states = Checkpoint(None, {})
    states.save("one", x=np.ones(2))
    assert states.load("one") is None
