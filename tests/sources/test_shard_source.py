"""Shards in `.npy` files: what is refused, changes meanwhile, memory."""

import mmap
import pickle
from pathlib import Path

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from robust_rlhf_jax.sources import ShardSource

X = np.arange(12.0, dtype=np.float32).reshape(4, 3)


def saved(path, values=X):
    np.save(path, values)
    return path


def test_lists_are_read_in_their_order(tmp_path):
    paths = [saved(tmp_path / "b.npy", X[:1]), saved(tmp_path / "a.npy", X[1:])]
    (block,) = ShardSource(list(map(str, paths)), groups=saved(tmp_path / "raters.npy", np.arange(4))).blocks(
        4
    )
    np.testing.assert_array_equal(block, X)


def test_two_folders_are_two_sides(tmp_path):
    for name, x in [("a", X), ("b", X / 2)]:
        (tmp_path / name).mkdir()
        saved(tmp_path / name / "0.npy", x)
        saved(tmp_path / name / ".hidden.npy", x)
    saved(tmp_path / "a" / "labels.npy", np.array([1, 1, 1, 0]))
    (block,) = ShardSource(tmp_path / "a", tmp_path / "b").blocks(4)
    np.testing.assert_array_equal(block, X / 2 * [[1], [1], [1], [-1]])


def test_what_is_given_goes_before_what_lies_in_the_folder(tmp_path):
    saved(tmp_path / "x.npy")
    saved(tmp_path / "groups.npy", np.zeros(4))
    assert ShardSource(tmp_path, groups=[1, 2, 3, 4]).groups.tolist() == [1, 2, 3, 4]


class Trap:
    def __reduce__(self):
        return pytest.fail, ("it was unpickled",)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is not a .npy file of numbers"),
        (b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f4'", "is not a .npy file of numbers"),
        (pickle.dumps(Trap()), "is not a .npy file of numbers"),
        (np.array([[Trap()]], object), "is not a .npy file of numbers"),
        (np.array([["a"]]), "holds <U1: give float16"),
        (np.ones((2, 2), ml_dtypes.float8_e4m3fn), "holds |V1: give float16"),
        (np.ones(3), "has shape (3,): give [N, k]"),
        (np.ones((0, 3)), "has shape (0, 3): give [N, k]"),
    ],
)
def test_other_files_are_refused(tmp_path, content, said):
    path = tmp_path / "x.npy"
    path.write_bytes(content) if isinstance(content, bytes) else np.save(path, content)
    with pytest.raises(ValueError, match="npy") as found:
        ShardSource(path)
    assert str(found.value).startswith(f"{path} {said}")


def test_a_file_that_ends_early_is_refused(tmp_path):
    whole = saved(tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(whole[:-1])
    with pytest.raises(ValueError, match=r"x\.npy is not a \.npy file of numbers"):
        ShardSource(tmp_path / "x.npy")


def test_missing_files_are_named(tmp_path):
    for given in (tmp_path / "x.npy", [tmp_path / "x.npy"]):
        with pytest.raises(FileNotFoundError, match=r"x\.npy does not exist: check the path\."):
            ShardSource(given)
    for given in (tmp_path, []):
        with pytest.raises(ValueError, match=r"has no \.npy file: give files, or a folder of them\."):
            ShardSource(given)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            {"a": X, "b": X[:, :2]},
            r"b.npy has 2 features in float32, a.npy 3 in float32: give shards of one kind",
        ),
        ({"a": X, "b": X.astype(jnp.bfloat16)}, r"b.npy has 3 features in bfloat16, a.npy 3 in float32"),
        ({"chosen": X}, r"has 1 files named chosen… and 0 named rejected… that do not match"),
        ({"chosen-1": X, "rejected-2": X}, r"that do not match: give every file a partner of the same name"),
        ({"chosen": X, "rejected": X, "more": X}, r"has more than files named chosen… and rejected…"),
        ({"chosen": X, "rejected": X[:2]}, r"have the shapes \(4, 3\), those of rejected ones \(2, 3\)"),
        ({"a": X, "labels": np.full(4, 2)}, r"labels\[0\] is 2: give 1"),
        ({"a": X, "groups": np.arange(3)}, r"groups has shape \(3,\): give one for each of the 4 pairs"),
    ],
)
def test_files_that_do_not_match_are_refused(tmp_path, files, said):
    for name, values in files.items():
        saved(tmp_path / f"{name}.npy", values)
    with pytest.raises(ValueError, match=said):
        ShardSource(tmp_path)


def test_a_file_that_changes_is_noticed(tmp_path):
    source = ShardSource(saved(tmp_path / "x.npy"))
    before = source.fingerprint()
    saved(tmp_path / "x.npy", X + 1)
    assert source.fingerprint() != before
    saved(tmp_path / "x.npy", X[:2])
    with pytest.raises(ValueError, match=r"x\.npy has changed since it was opened: open it again\."):
        list(source.blocks(3))


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="asks Linux")
@pytest.mark.parametrize("apart", [False, True])
def test_pages_that_were_read_are_given_up(tmp_path, apart):
    """A file of 64 MB, in blocks of 1 MB."""
    path = saved(tmp_path / "x.npy", np.ones((32_768, 1024), np.float16))
    source = ShardSource(path, path if apart else None)
    before = resident()
    assert max(resident() - before for _ in source.blocks(512)) < 16e6
