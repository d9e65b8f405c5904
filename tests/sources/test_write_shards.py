"""Any source as shards: round trips, types, and what is left where writing ends early."""

import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.sources import ArraySource, GeneratedSource, ShardSource, open_pairs, write_shards

X = np.arange(36.0, dtype=np.float32).reshape(12, 3)
GROUPS = np.array(["Ann", "Ben", "Cleo"] * 4)


def contents(source):
    return np.concatenate(list(source.blocks(5)))


@pytest.mark.parametrize("dtype", [None, "float16", jnp.bfloat16, np.float32, np.dtype("float64")])
def test_what_is_written_is_read(tmp_path, dtype):
    labels = np.array([1, -1] * 6)
    source = ArraySource(X, labels=labels, groups=GROUPS)
    written = write_shards(source, tmp_path / "shards", rows_per_shard=5, dtype=dtype)
    names = [f"shard-0000{i}.npy" for i in range(3)]
    assert sorted(path.name for path in (tmp_path / "shards").iterdir()) == ["groups.npy", *names]
    for found in (written, ShardSource(tmp_path / "shards"), open_pairs(str(tmp_path / "shards"))):
        assert contents(found).dtype == np.dtype(dtype or np.float32)
        np.testing.assert_array_equal(contents(found), X * labels[:, None])
        np.testing.assert_array_equal(found.groups, GROUPS)


@pytest.mark.slow
def test_names_of_many_shards_are_in_order(tmp_path, monkeypatch):
    x = np.ones((100_001, 1), np.float16)
    source = GeneratedSource(lambda: iter([x]))
    seen = []
    monkeypatch.setattr(np, "save", lambda path, *_, **__: seen.append(path.name))
    with pytest.raises(ValueError, match=r"has no \.npy file"):
        write_shards(source, tmp_path / "shards", rows_per_shard=1)
    assert len(seen) == len(x)
    assert seen == sorted(seen)


def test_groups_of_words_as_objects_are_written(tmp_path):
    source = ArraySource(X, groups=GROUPS.astype(object))
    np.testing.assert_array_equal(write_shards(source, tmp_path / "a", rows_per_shard=9).groups, GROUPS)
    mixed = write_shards(
        ArraySource(X, groups=np.array(["Ann", 1] * 6, object)), tmp_path / "b", rows_per_shard=9
    )
    assert mixed.groups[:3].tolist() == ["Ann", "1", "Ann"]
    with pytest.raises(ValueError, match="The groups are neither numbers nor words"):
        write_shards(ArraySource(X, groups=np.array([2, 1] * 6, object)), tmp_path / "c", rows_per_shard=9)


def test_an_end_halfway_leaves_nothing(tmp_path):
    calls = []

    def make():
        yield X[:6]
        calls.append(1)
        if len(calls) > 1:
            raise RuntimeError("the power went")
        yield X[6:]

    with pytest.raises(RuntimeError, match="the power went"):
        write_shards(GeneratedSource(make), tmp_path / "shards", rows_per_shard=5)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"dtype": "int8"}, "dtype='int8' is none of float16, float32, float64, bfloat16: give one of them"),
        ({"dtype": "half"}, "dtype='half' is none of"),
        ({"rows_per_shard": 0}, "rows_per_shard=0: give a whole number"),
    ],
)
def test_other_arguments_are_refused(tmp_path, given, said):
    with pytest.raises(ValueError, match=said):
        write_shards(ArraySource(X), tmp_path / "shards", **({"rows_per_shard": 5} | given))
    assert not list(tmp_path.iterdir())


def test_numbers_must_fit(tmp_path):
    for value, fits in [(np.inf, True), (np.nan, True), (1e5, False)]:
        x = X.copy()
        x[7, 1] = value
        if fits:
            written = write_shards(ArraySource(x), tmp_path / str(value), rows_per_shard=5, dtype="float16")
            np.testing.assert_array_equal(contents(written), x)
        else:
            with pytest.raises(ValueError, match="The difference 100000 is too large for float16"):
                write_shards(ArraySource(x), tmp_path / "lost", rows_per_shard=5, dtype="float16")
            assert not (tmp_path / "lost").exists()


def test_what_is_there_stays(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes").write_text("mine")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "empty").mkdir()
    for name in ("full", "file", "full/notes"):
        with pytest.raises(ValueError, match="is there already: give a new folder"):
            write_shards(ArraySource(X), tmp_path / name, rows_per_shard=5)
    with pytest.raises(FileNotFoundError, match="lost does not exist: make the folder first"):
        write_shards(ArraySource(X), tmp_path / "lost" / "shards", rows_per_shard=5)
    assert write_shards(ArraySource(X), tmp_path / "empty", rows_per_shard=5).n_pairs == 12
    assert (tmp_path / "full" / "notes").read_text() == (tmp_path / "file").read_text() == "mine"


def test_a_column_that_a_type_would_lose_is_refused(tmp_path):
    x = np.array([[1.0, 1e-9], [0.5, -2e-9]])
    with pytest.raises(ValueError, match="Feature 2 is at most 2e-09, too small for float16: multiply it"):
        write_shards(ArraySource(x), tmp_path / "half", rows_per_shard=5, dtype="float16")
    assert not (tmp_path / "half").exists()
    write_shards(ArraySource(x), tmp_path / "wide", rows_per_shard=5, dtype="bfloat16")
    write_shards(ArraySource(x * [1.0, 1e9]), tmp_path / "scaled", rows_per_shard=5, dtype="float16")


def test_a_last_shard_of_few_rows_may_have_small_entries(tmp_path):
    x = np.random.default_rng(0).normal(size=(101, 64)) * 0.02
    x[100] = 1e-5
    shards = write_shards(ArraySource(x), tmp_path / "half", rows_per_shard=100, dtype="float16")
    assert shards.n_pairs == 101
