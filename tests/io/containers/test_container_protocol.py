"""What every container is held to: its pairs are read, described, exported and read again; damage is one sentence."""

import gzip
import importlib
import shutil

import numpy as np
import pytest
from wild import stores

from robust_rlhf_jax.io import describe, export, load_pairs
from robust_rlhf_jax.io.containers import BY_SUFFIX, CONTAINERS, WRITERS
from robust_rlhf_jax.io.containers.compression import COMPRESSIONS, open_to_write
from robust_rlhf_jax.io.exports import check_export

TEXTS = [{"prompt": f"q{i}", "chosen": f"Süß, {i}.", "rejected": f"nein = {i}"} for i in range(4)]
VECTORS = [{"chosen": [i, 1.5], "rejected": [2.0, -i]} for i in range(4)]
SAMPLES = {
    "delimited": (stores.table(), TEXTS),
    "json_texts": (stores.jsonl(), TEXTS),
    "parquet_files": (stores.parquet(), TEXTS),
    "arrow_files": (stores.feather, TEXTS),
    "arrow_folders": (stores.saved(), TEXTS),
    "array_files": (stores.arrays("npy"), VECTORS),
    "npy_folders": (stores.arrays("folder"), VECTORS),
    "npz_files": (stores.arrays("npz"), VECTORS),
    "safetensors_files": (stores.arrays("safetensors"), VECTORS),
}
NAMES = [container.__name__.rpartition(".")[2] for container in CONTAINERS]
OF = dict(zip(NAMES, CONTAINERS, strict=True))
WRITTEN = [name for name in NAMES if hasattr(OF[name], "write")]
# Of one file, which its suffix tells.
SINGLE = [name for name in NAMES if OF[name].SUFFIXES and not getattr(OF[name], "AS_FOLDER", False)]


def sample(name, folder):
    """A small file of pairs; that of a container that is not in `SAMPLES` is made by its test, `test_NAME.sample`."""
    folder.mkdir()
    if name not in SAMPLES:
        return importlib.import_module(f"test_{name}").sample(folder)
    store, rows = SAMPLES[name]
    return store(folder, rows)


def assert_same(found, wanted, rows=None):
    wanted = wanted if rows is None else wanted.take(rows)
    assert found.n_pairs == wanted.n_pairs
    assert found.texts == wanted.texts
    for mine, other in ((found.chosen, wanted.chosen), (found.rejected, wanted.rejected)):
        np.testing.assert_array_equal(mine, other)
    np.testing.assert_array_equal(found.labels, wanted.labels)


def read(path):
    return load_pairs(path, featuriser="format")


def test_names_and_suffixes_are_given_once():
    suffixes = [suffix for container in CONTAINERS for suffix in container.SUFFIXES]
    assert sorted(suffixes) == sorted(BY_SUFFIX)
    assert all(suffix == suffix.lower() and suffix.startswith(".") for suffix in suffixes)
    owners = {}
    for container in CONTAINERS:  # the two of .npy files write in one way
        owners.setdefault(container.NAME, set()).add(getattr(container, "write", container))
    assert all(len(writers) == 1 for writers in owners.values())


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_is_described(tmp_path, name):
    path = sample(name, tmp_path / "in")
    pairs, found = read(path), describe(path)
    assert pairs.source.container == OF[name].NAME
    assert pairs.format == OF[name].NAME.split()[0]
    assert found.n_pairs == pairs.n_pairs > 1
    assert found.container == (pairs.source.shown or pairs.source.container)
    assert found.lines()[0].startswith(f"{found.container}, ")


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_exported_is_read_again(tmp_path, name):
    pairs = read(sample(name, tmp_path / "in"))
    out = tmp_path / f"out{pairs.source.suffix}"
    export(pairs, out, {"note": [f"n{i}" for i in range(pairs.n_pairs)]})
    again = read(out)
    assert_same(again, pairs)
    assert again.source.container == pairs.source.container
    keep = np.arange(pairs.n_pairs) != 1
    part = tmp_path / f"part{pairs.source.suffix}"
    export(again, part, {}, keep)
    assert_same(read(part), pairs, np.flatnonzero(keep))


def test_a_container_may_only_read(tmp_path, monkeypatch):
    pairs = read(sample("delimited", tmp_path / "in"))
    monkeypatch.delitem(WRITERS, "csv")
    with pytest.raises(
        ValueError, match=r"is CSV, which is read and not written; --out writes suspects.csv\."
    ):
        check_export(pairs, tmp_path / "out.csv", "--export")


@pytest.mark.parametrize("name", SINGLE)
def test_two_files_of_a_kind_are_read_as_one(tmp_path, name):
    path = sample(name, tmp_path / "in")
    folder = tmp_path / "several"
    folder.mkdir()
    for i in range(2):
        shutil.copy(path, folder / f"part-{i}{path.suffix}")
    one, both = read(path), read(folder)
    assert_same(both.take(range(one.n_pairs)), one)
    assert both.n_pairs == 2 * one.n_pairs
    assert describe(folder).container == describe(path).container
    if name in WRITTEN:
        assert_same(read(export(both, tmp_path / "out", {})), both)


def test_columns_of_different_types_are_not_joined(tmp_path):
    for i, cell in enumerate(("a", 1)):
        folder = tmp_path / str(i)
        folder.mkdir()
        stores.parquet()(folder, [row | {"more": cell} for row in TEXTS])
    with pytest.raises(ValueError, match=r"holds different types in more \(.*\): give all alike\."):
        read(tmp_path)


def test_arrays_of_different_widths_are_not_joined(tmp_path):
    for width in (2, 3):
        np.savez(tmp_path / f"part-{width}.npz", chosen=np.ones((4, width)), rejected=np.zeros((4, width)))
    with pytest.raises(ValueError, match=r"rows of different lengths in chosen: give all alike\."):
        read(tmp_path)


@pytest.mark.parametrize("name", SINGLE)
def test_a_compressed_file_is_read_or_refused(tmp_path, name):
    path = sample(name, tmp_path / "in")
    packed = tmp_path / f"{path.name}.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    if getattr(OF[name], "PACKED", False):
        with pytest.raises(ValueError, match="compresses itself"):
            read(packed)
        return
    pairs = read(packed)
    assert_same(pairs, read(path))
    assert describe(packed).container == f"{describe(path).container}, gzip"
    if name in WRITTEN:
        assert_same(read(export(pairs, tmp_path / f"out{pairs.source.suffix}", {})), pairs)


def refused(path):
    """The sentence, or "" where something is read; other errors are raised."""
    try:
        return "" if read(path).n_pairs else "no pairs"
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("name", SINGLE)
def test_a_damaged_file_is_refused_in_a_sentence_or_read_in_part(tmp_path, name):
    path = sample(name, tmp_path / "in")
    content = path.read_bytes()
    size, middle = len(content), len(content) // 2
    for changed in (content[:middle], content[: size - 3], content[:middle] + b"\xff\x00" + content[middle:]):
        path.write_bytes(changed)
        said = refused(path)
        assert not said or (said.startswith(str(path)) and said.endswith("."))


@pytest.mark.parametrize("name", SINGLE)
def test_another_kind_of_file_under_its_suffix_is_refused(tmp_path, name):
    """Of the files that are known by their first bytes, all but its own."""
    for head in (b"PAR1", b"PK\x03\x04", b"\x93NUMPY", b"%PDF", b"SQLite"):
        path = tmp_path / f"pairs{OF[name].SUFFIXES[0]}"
        path.write_bytes(head + bytes(40))
        with pytest.raises(ValueError, match="again"):
            read(path)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_the_same_rows_are_the_same_bytes_under_any_name(tmp_path, suffix):
    plain = sample("json_texts", tmp_path / "in")
    squeezed = tmp_path / f"pairs.jsonl{suffix}"
    name = next(name for name, (_, end) in COMPRESSIONS.items() if end == suffix)
    with open_to_write(squeezed, name) as file:
        file.write(plain.read_bytes())
    pairs = read(squeezed)
    copies = [export(pairs, tmp_path / f"{name}.jsonl{suffix}", {}).read_bytes() for name in ("a", "b")]
    assert copies[0] == copies[1]
    assert b"unfinished" not in copies[0]
