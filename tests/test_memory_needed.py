"""Sizes in words, and what cannot fit is refused with the memory that it needs."""

import json
import struct
import zipfile

import numpy as np
import pytest

from robust_rlhf_jax import memory
from robust_rlhf_jax.memory import check_room, host_bytes, in_words
from robust_rlhf_jax.preferences import load


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, "0 bytes"), (999, "999 bytes"), (1000, "1 kB"), (3_210_000_000, "3.21 GB"), (10**23, "1e+05 EB")],
)
def test_words(size, words):
    assert in_words(size) == words


def test_what_fits_is_fine_and_what_does_not_is_refused():
    assert host_bytes() > 1 << 28
    check_room("it", 10, "give less", memory=10)
    with pytest.raises(
        ValueError, match=r"^it needs 11 bytes of memory, and there are 10 bytes: give less\.$"
    ):
        check_room("it", 11, "give less", memory=10)


@pytest.mark.parametrize(
    "words",
    [
        "--n-pairs 4000000000000",
        "--seeds 4000000000000",
        "--n-pairs 9223372036854775808",
        "--seeds 1" + 40 * "0",
    ],
)
def test_a_sweep_that_cannot_fit_is_refused_before_its_work(robust_rlhf, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    sweep = (
        "sweep --preset tiny --families chain --attacks flip_confident --epsilons 0.2 --algorithms standard"
    )
    status, _, errors = robust_rlhf(*sweep.split(), *words.split())
    assert status == 2
    assert errors.startswith("robust-rlhf: the sweep needs ")
    assert errors.endswith(": give fewer pairs, seeds or lanes.\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "words", ["sweep --seed -1", "sweep --seed 4294967296", "audit rail --seed 1" + 40 * "0"]
)
def test_seeds_that_would_stand_for_others_are_refused(robust_rlhf, words):
    status, _, errors = robust_rlhf(*words.split())
    assert (status, errors.count("\n")) == (2, 1)
    assert errors.startswith("robust-rlhf: seed=")
    assert errors.endswith("is outside 0 to 4294967295: give a whole number in between.\n")


def test_repeats_that_cannot_fit_are_refused(robust_rlhf):
    status, _, errors = robust_rlhf("audit", "rail", "--repeats", "4000000000")
    assert status == 2
    assert errors.startswith("robust-rlhf: repeats=4000000000 with folds=5 needs ")


def claim(shape) -> bytes:
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


@pytest.mark.parametrize("shape", [(10**23,), (10**13,), (2**62, 4), (2**31, 2**31, 2)])
def test_an_archive_that_claims_too_much_is_refused(tmp_path, shape):
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("labels.npy", claim(shape))
    with pytest.raises(ValueError, match=r"a\.npz is not a readable \.npz archive"):
        load(path)


def test_an_archive_larger_than_the_memory_is_not_unpacked(tmp_path, monkeypatch):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, labels=np.zeros(100_000))
    monkeypatch.setattr(memory, "host_bytes", lambda: 500_000)
    with pytest.raises(
        ValueError, match=r"a\.npz: unpacking it needs 800 kB of memory, and there are 500 kB"
    ):
        load(path)


def test_a_table_larger_than_the_memory_is_not_read(tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pa.table({"chosen_a": [1.0] * 1000, "rejected_a": [2.0] * 1000}), path)
    monkeypatch.setattr(memory, "host_bytes", lambda: 10_000)
    with pytest.raises(ValueError, match=r"a\.parquet: reading it needs 16 kB of memory"):
        load(path)


@pytest.mark.parametrize(
    "header",
    [
        [],
        {},
        {"shapes": []},
        {"shapes": {"labels": "x"}},
        {"shapes": {"labels": [1e30]}},
        {"shapes": {}, "planning_horizon": [1]},
    ],
)
def test_a_broken_header_of_parquet_is_named(tmp_path, header):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    path = tmp_path / "a.parquet"
    table = pa.table({"labels": [1.0]}).replace_schema_metadata({b"robust_rlhf_jax": json.dumps(header)})
    pyarrow.parquet.write_table(table, path)
    with pytest.raises(ValueError, match=r"a\.parquet is not a readable Parquet file \("):
        load(path)
