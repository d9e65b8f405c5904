"""Every source gives the same rows in the same order, in blocks of any size, as often as asked."""

import pickle
import re
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from parquet_of_lists import parquet_file

from robust_rlhf_jax import Pairs, fit_reward
from robust_rlhf_jax.audit import audit_source
from robust_rlhf_jax.sources import (
    ArraySource,
    GeneratedSource,
    PairSource,
    ParquetSource,
    ShardSource,
    blocks_from,
    open_pairs,
    read_ahead,
    write_shards,
)
from robust_rlhf_jax.sources.protocol import place_in_words

N, K = 150, 3
BFLOAT16 = np.dtype(jnp.bfloat16)
RNG = np.random.default_rng(0)
SIGNS = RNG.choice([-1, 1], N)
GROUPS = RNG.choice(["Ann", "Ben", "Cleo"], N)


def drawn(dtype, seed):
    return np.random.default_rng(seed).normal(size=(N, K)).astype(dtype)


def apart(dtype):
    """Chosen, rejected, and chosen less rejected in float32 or float64."""
    chosen, rejected = drawn(dtype, 1), drawn(dtype, 2)
    wide = np.float64 if dtype == np.float64 else np.float32
    return chosen, rejected, chosen.astype(wide) - rejected.astype(wide)


def arrays(dtype, folder):
    x = drawn(dtype, 1)
    return ArraySource(x, groups=GROUPS), x


def arrays_apart(dtype, folder):
    chosen, rejected, x = apart(dtype)
    return ArraySource(chosen, rejected, SIGNS), x * SIGNS[:, None].astype(x.dtype)


def arrays_of_jax(dtype, folder):
    x = drawn(dtype, 1)
    return ArraySource(jnp.asarray(x), labels=(SIGNS + 1) // 2), x * SIGNS[:, None].astype(dtype)


def pairs(dtype, folder):
    chosen, rejected, x = apart(dtype)
    return ArraySource.of_pairs(Pairs(chosen, rejected, raters=np.arange(N) % 12)), x


def parts(x, folder, name="shard"):
    for i, part in enumerate(np.split(x, [30, 31, 111])):
        np.save(folder / f"{name}-{i}.npy", part)


def shards(dtype, folder):
    x = drawn(dtype, 1)
    parts(x, folder)
    np.save(folder / "groups.npy", GROUPS)
    return ShardSource(folder), x


def shards_by_columns(dtype, folder):
    x = drawn(dtype, 1)
    np.save(folder / "x.npy", np.asfortranarray(x))
    return ShardSource(folder / "x.npy", labels=SIGNS > 0), x * SIGNS[:, None].astype(dtype)


def shards_apart(dtype, folder):
    chosen, rejected, x = apart(dtype)
    parts(chosen, folder, "chosen")
    parts(rejected, folder, "rejected")
    np.save(folder / "labels.npy", SIGNS)
    return open_pairs(folder), x * SIGNS[:, None].astype(x.dtype)


def written_shards(dtype, folder):
    x = drawn(dtype, 1)
    return write_shards(ArraySource(x, groups=GROUPS), folder / "new", rows_per_shard=40), x


def parquet(dtype, folder):
    x = drawn(dtype, 1)
    for i, rows in enumerate([slice(0, 100), slice(100, N)]):
        parquet_file(folder / f"{i}.parquet", {"differences": x[rows], "group": GROUPS[rows]}, rows=40)
    return open_pairs(folder), x


def parquet_apart(dtype, folder):
    chosen, rejected, x = apart(dtype)
    columns = {"a": chosen, "b": rejected, "first": (SIGNS + 1) // 2}
    path = parquet_file(folder / "pairs.parquet", columns, rows=70, fixed=False)
    return ParquetSource(path, "a", "b", label="first"), x * SIGNS[:, None].astype(x.dtype)


def generated(dtype, folder):
    x = drawn(dtype, 1)
    return GeneratedSource(lambda: (x[i : i + 37] for i in range(0, N, 37)), groups=GROUPS), x


def generated_of_known_length(dtype, folder):
    x = drawn(dtype, 1)
    return GeneratedSource(lambda: [x[:100], x[:0], x[100:]], n_pairs=N), x


HALF, ALL = ["float16", "bfloat16"], ["float16", "bfloat16", "float32", "float64"]
SOURCES = {
    arrays: ALL,
    arrays_apart: ALL,
    arrays_of_jax: [*HALF, "float32"],
    pairs: ["float32", "float64"],
    shards: ALL,
    shards_by_columns: HALF,
    shards_apart: ALL,
    written_shards: ALL,
    parquet: ["float16", "float32", "float64"],
    parquet_apart: ["float16", "float32", "float64"],
    generated: HALF,
    generated_of_known_length: ["float32"],
}
CASES = [
    pytest.param(make, np.dtype(dtype), id=f"{make.__name__}-{dtype}")
    for make, dtypes in SOURCES.items()
    for dtype in dtypes
]


@pytest.mark.parametrize(("make", "dtype"), CASES)
def test_blocks_are_the_rows_in_order(make, dtype, tmp_path):
    source, expected = make(dtype, tmp_path)
    assert isinstance(source, PairSource)
    assert (source.n_pairs, source.n_features) == (N, K)
    for rows in (1, 7, 64, 64, N, 1000):
        blocks = list(source.blocks(rows))
        assert [len(block) for block in blocks] == [min(rows, N - i) for i in range(0, N, rows)]
        assert {block.dtype for block in blocks} == {expected.dtype}
        np.testing.assert_array_equal(np.concatenate(blocks), expected)
    ahead = np.concatenate(list(read_ahead(source.blocks(64))))
    np.testing.assert_array_equal(ahead, expected)


@pytest.mark.parametrize("make", SOURCES, ids=lambda make: make.__name__)
def test_blocks_from_the_middle_are_the_rows_that_follow(make, tmp_path):
    source, expected = make(np.dtype("float32"), tmp_path)
    for begin in (0, 1, 30, 64, 100, 128, N - 1):
        for rows in (7, 64, 1000):
            blocks = list(blocks_from(source, begin, rows))
            assert [len(block) for block in blocks] == [min(rows, N - i) for i in range(begin, N, rows)]
            np.testing.assert_array_equal(np.concatenate(blocks), expected[begin:])
    assert list(blocks_from(source, N, 7)) == []


def test_a_source_of_ones_own_need_not_be_read_from_the_middle():
    class Own:
        n_pairs, n_features, groups = N, K, None
        fingerprint = staticmethod(lambda: "own")
        blocks = staticmethod(ArraySource(drawn("float32", 1)).blocks)

    found = np.concatenate(list(blocks_from(Own(), 70, 20)))
    np.testing.assert_array_equal(found, drawn("float32", 1)[70:])


@pytest.mark.parametrize("begin", [-1, 2.0, True, None])
def test_begin_is_a_number_from_0(begin):
    with pytest.raises(ValueError, match=r"^begin=.*: give a whole number of at least 0\.$"):
        blocks_from(ArraySource(np.ones((3, 2))), begin, 2)


FILES = [shards, shards_apart, written_shards, parquet, parquet_apart]


@pytest.mark.parametrize("make", [arrays, arrays_apart, *FILES])
def test_a_pickled_source_is_the_same_from_any_folder(make, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    source, expected = make(np.dtype("float32"), Path("."))
    pickled = pickle.dumps(source)
    monkeypatch.chdir(tmp_path / "there")
    found = pickle.loads(pickled)
    assert found.fingerprint() == pickle.loads(pickled).fingerprint()
    np.testing.assert_array_equal(np.concatenate(list(found.blocks(64))), expected)


def make_two_blocks():
    yield drawn("float32", 1)[:100]
    yield drawn("float32", 1)[100:]


def test_a_generated_source_of_a_function_is_pickled_within_a_pass():
    source = GeneratedSource(make_two_blocks)
    begun = source.blocks(10)
    next(begun)
    found = pickle.loads(pickle.dumps(source))
    np.testing.assert_array_equal(np.concatenate(list(found.blocks(64))), drawn("float32", 1))


@pytest.mark.parametrize(("make", "dtype"), CASES)
def test_passes_do_not_disturb_each_other(make, dtype, tmp_path):
    source, expected = make(dtype, tmp_path)
    half = source.blocks(64)
    np.testing.assert_array_equal(next(half), expected[:64])
    for one, other in zip(source.blocks(20), source.blocks(20), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(next(half), expected[64:128])


@pytest.mark.parametrize("make", SOURCES, ids=lambda make: make.__name__)
def test_a_fingerprint_is_the_sources_own(make, tmp_path):
    found = []
    for name, dtype in [("one", "float32"), ("same", "float32"), ("other", SOURCES[make][0])]:
        (tmp_path / name).mkdir()
        found.append(make(np.dtype(dtype), tmp_path / name)[0].fingerprint())
    assert found[0] == found[1]
    assert SOURCES[make][0] == "float32" or found[0] != found[2]


@pytest.mark.parametrize("make", [arrays, shards, written_shards, parquet, generated])
def test_groups_are_kept(make, tmp_path):
    np.testing.assert_array_equal(make(np.dtype("float16"), tmp_path)[0].groups, GROUPS)


@pytest.mark.parametrize("make", [arrays_apart, shards_apart, parquet_apart, generated_of_known_length])
def test_there_may_be_no_groups(make, tmp_path):
    assert make(np.dtype("float16"), tmp_path)[0].groups is None


@pytest.mark.parametrize("rows", [0, -1, 2.0, True, None])
@pytest.mark.parametrize("make", [arrays, shards, parquet, generated])
def test_rows_are_a_number_above_0(make, rows, tmp_path):
    source, _ = make(np.dtype("float32"), tmp_path)
    with pytest.raises(ValueError, match=r"^rows=.*: give a whole number of at least 1\.$"):
        source.blocks(rows)


@pytest.mark.parametrize("make", [arrays, shards, parquet, generated])
def test_values_are_not_checked(make, tmp_path, monkeypatch):
    x = np.full((N, K), np.nan, np.float32)
    monkeypatch.setitem(globals(), "drawn", lambda *_: x)
    source, _ = make(np.dtype("float32"), tmp_path)
    assert all(np.isnan(block).all() for block in source.blocks(64))


@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
def test_files_name_the_row_of_a_pair(tmp_path, suffix):
    x = np.ones((5, 2))
    x[3, 1] = np.nan
    for name, rows in (("a", x[:2]), ("b", x[2:])):
        if suffix == ".npy":
            np.save(tmp_path / f"{name}.npy", rows)
        else:
            parquet_file(tmp_path / f"{name}.parquet", {"differences": rows})
    source = open_pairs(tmp_path)
    assert [source.place_of(pair) for pair in (1, 2)] == [
        f"row 1 (from 0) of {tmp_path / 'a'}{suffix}",
        f"row 0 (from 0) of {tmp_path / 'b'}{suffix}",
    ]
    said = f"not finite: leave it out; pair 3 is row 1 (from 0) of {tmp_path / 'b'}{suffix}."
    with pytest.raises(ValueError, match=re.escape(said)):
        fit_reward(source)
    said = f"or embed them again; pair 3 is row 1 (from 0) of {tmp_path / 'b'}{suffix}."
    with pytest.raises(ValueError, match=re.escape(said)):
        audit_source(source)
    assert place_in_words(ArraySource(x), 3) == ""
