import dataclasses
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robust_rlhf_jax import Pairs
from robust_rlhf_jax.preferences import PreferenceData, load, load_rail_choices, load_table, save

FORMATS = ["npz", "parquet"]
SPECIAL = np.array([-0.0, 0.0, 1e-45, -1e-38, 4e37, 1 / 3, np.pi], np.float32)


def make_data(seed=0, n=5, horizon=2, dim=3, reward_dim=None, stationary=False, dtype=np.float32):
    """Random valid data, awkward floats included, whose features have nothing to do with the table."""
    rng = np.random.default_rng(seed)
    n_states, n_actions = rng.integers(1, 5, 2)

    def reals(*shape):
        x = rng.normal(size=shape).astype(dtype)
        return np.where(rng.random(shape) < 0.3, rng.choice(SPECIAL, shape), x).astype(dtype)

    reward_table = None if reward_dim is None else reals(n_states, n_actions, reward_dim)
    reward = None if reward_dim is None else reals(n, 2, horizon, reward_dim)
    observed = features = reals(n, 2, horizon, dim)
    observed = features if reward is None else reward
    observed[0, :, :, 0] = [[1.0], [2.0]]
    return PreferenceData(
        reals(n_states, n_actions, dim),
        rng.integers(0, n_states, (n, 2, horizon + 1)).astype(np.int32),
        rng.integers(0, n_actions, (n, 2, horizon)).astype(np.int32),
        features,
        rng.choice(np.array([-1, 1], dtype), n),
        reward_table,
        reward,
        stationary,
    )


def assert_same_bits(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)  # the optional and the static fields
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        assert x.tobytes() == y.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("suffix", FORMATS)
@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 7),
    horizon=st.integers(1, 4),
    dim=st.integers(1, 4),
    reward_dim=st.none() | st.integers(1, 4),
    stationary=st.booleans(),
)
def test_round_trip_keeps_every_bit(suffix, **sizes):
    data = make_data(**sizes)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"data.{suffix}"
        save(path, data)
        loaded = load(path)
        assert os.listdir(folder) == [path.name]
    assert_same_bits(data, loaded)
    assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(loaded))


@pytest.mark.parametrize("suffix", FORMATS)
def test_names_of_features_are_kept(suffix, tmp_path):
    data = dataclasses.replace(make_data(), names=("price", "Länge", "[c] \ud83d"))
    save(tmp_path / f"data.{suffix}", data)
    assert load(tmp_path / f"data.{suffix}").names == data.names
    save(tmp_path / f"pairs.{suffix}", Pairs(np.ones((2, 2)), np.zeros((2, 2)), names=("a", "b")))
    assert load(tmp_path / f"pairs.{suffix}").names == ("a", "b")


@pytest.mark.parametrize("suffix", FORMATS)
def test_round_trip_of_jax_arrays_and_real_data(suffix, tmp_path):
    data = load_rail_choices()
    path = tmp_path / f"rail.{suffix.upper()}"
    save(str(path), data)
    assert_same_bits(data, load(str(path)))


@pytest.mark.parametrize("suffix", FORMATS)
def test_float64_is_kept_where_jax_can_hold_it(suffix, tmp_path):
    data = make_data(dtype=np.float64, reward_dim=2)
    path = tmp_path / f"data.{suffix}"
    save(path, data)
    with jax.enable_x64(True):
        assert_same_bits(data, load(path))
    with jax.enable_x64(False):
        assert load(path).features.dtype == jnp.float32


@pytest.mark.parametrize("suffix", FORMATS)
def test_float64_that_overflows_float32_is_named(suffix, tmp_path):
    data = make_data(dtype=np.float64)
    data.features[3, 0, 1, 2] = 1e300
    path = tmp_path / f"data.{suffix}"
    save(path, data)
    with jax.enable_x64(False), pytest.raises(ValueError, match=r"features\[3, 0, 1, 2\] is inf"):
        load(path)


@pytest.mark.parametrize("suffix", FORMATS)
def test_save_replaces_a_file_and_keeps_the_umask(suffix, tmp_path):
    path, plain = tmp_path / f"data.{suffix}", tmp_path / "plain"
    path.write_bytes(b"old")
    plain.touch()
    save(path, make_data())
    assert load(path).n_pairs == 5
    assert path.stat().st_mode == plain.stat().st_mode


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(suffix, tmp_path, monkeypatch):
    path = tmp_path / f"data.{suffix}"
    save(path, make_data())
    before = path.read_bytes()

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        save(path, make_data(seed=1))
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


def test_save_refuses_bad_data_suffixes_and_folders(tmp_path):
    data = make_data()
    with pytest.raises(ValueError, match=r"'.csv' cannot be written: choose .npz or .parquet"):
        save(tmp_path / "data.csv", data)
    with pytest.raises(FileNotFoundError, match=r"folder .* does not exist"):
        save(tmp_path / "nowhere" / "data.npz", data)
    with pytest.raises(ValueError, match="every label"):
        save(tmp_path / "data.npz", dataclasses.replace(data, labels=0 * data.labels))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("suffix", [*FORMATS, "csv", "jsonl"])
def test_load_names_missing_empty_and_corrupt_files(suffix, tmp_path):
    path = tmp_path / f"data.{suffix}"
    with pytest.raises(FileNotFoundError, match="does not exist"):
        load(path)
    path.touch()
    with pytest.raises(ValueError, match="0 bytes"):
        load(path)
    path.write_bytes(bytes(range(128, 256)) * 3)
    with pytest.raises(ValueError, match=str(path)):
        load(path)


def test_load_refuses_an_unknown_suffix(tmp_path):
    with pytest.raises(ValueError, match=r"suffix '.pkl' is not one of .csv, .*.npz, .safetensors"):
        load(tmp_path / "data.pkl")


@pytest.mark.parametrize("suffix", FORMATS)
@settings(max_examples=60)
@given(cut=st.floats(0, 0.999), flip=st.none() | st.floats(0, 0.999))
def test_a_damaged_file_never_gives_another_error_than_value_error(suffix, cut, flip):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"data.{suffix}"
        save(path, make_data(n=40))
        content = bytearray(path.read_bytes())
        if flip is None:
            content = content[: int(cut * len(content))]
        else:
            content[int(flip * len(content))] ^= 0x5A
        path.write_bytes(content)
        try:
            load(path)
        except ValueError as error:
            assert str(path) in str(error)  # noqa: PT017 (a flip may also fall where it does no harm)


def test_pickles_are_refused_and_not_run(tmp_path):
    witness = tmp_path / "ran"

    class Evil:
        def __reduce__(self):
            return (Path.touch, (witness,))

    arrays = {name: np.asarray(x) for name, x in vars(make_data()).items() if isinstance(x, np.ndarray)}
    path = tmp_path / "data.npz"
    np.savez(path, **(arrays | {"labels": np.array([Evil()], object)}))
    with pytest.raises(ValueError, match=r"pickle is refused .*save plain arrays"):
        load(path)
    path.write_bytes(pickle.dumps(Evil()))
    with pytest.raises(ValueError, match="pickled"):
        load(path)
    assert not witness.exists()


def write_npz(path, **changes):
    """A hand-made archive without header; None drops an array."""
    arrays = {name: x for name, x in vars(make_data()).items() if isinstance(x, np.ndarray)}
    arrays = {name: x for name, x in (arrays | changes).items() if x is not None}
    np.savez(path, **arrays)
    return path


def test_hand_made_archives_need_no_header(tmp_path):
    data = load(write_npz(tmp_path / "data.npz"))
    assert_same_bits(data, make_data())
    states = make_data().states.astype(np.int64)
    assert load(write_npz(tmp_path / "data.npz", states=states, stationary=np.array(1))).stationary


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": None}, "lacks the array labels"),
        ({"reward_feature": np.zeros(3)}, "unknown array 'reward_feature'"),
        ({"labels": np.zeros(5, np.float32)}, "every label must be"),
        ({"labels": np.ones(5, bool)}, "labels has dtype bool: convert it"),
        ({"labels": np.array([0, 1, 1, 0, 1.0])}, r"labels\[0\] is 0.0: every label must be .*map 0 to -1"),
        ({"labels": np.full(5, 7.0)}, r"labels\[0\] is 7.0: every label must be"),
        ({"labels": np.array([1, -1, np.nan, 1, 1])}, r"labels\[2\] is nan: every label must be"),
        ({"labels": np.ones(5, np.float16)}, "labels has dtype float16: convert it"),
        ({"labels": np.array(list("abcde"))}, "labels has dtype <U1"),
        ({"states": np.full((5, 2, 3), 2**32)}, "but state_features has"),
        ({"features": np.zeros(5, np.float32)}, "features has shape"),
        ({"names": np.arange(3)}, "names must be a list of texts"),
        ({"names": np.array("abc")}, "names must be a list of texts"),
        ({"names": np.array(["a", "b"])}, "names has length 2: give one for each of the 3"),
        ({"stationary": np.zeros(2, bool)}, "stationary must be one integer or boolean"),
        ({"format_version": np.array(2)}, "format version 2, this package reads 1"),
    ],
)
def test_wrong_archives_are_named(changes, message, tmp_path):
    path = write_npz(tmp_path / "data.npz", **changes)
    with pytest.raises(ValueError, match=message) as error:
        load(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("stationary", [False, True])
def test_differences_that_overflow_are_named(tmp_path, stationary):
    features = make_data().features
    features[3, :, 1, 2] = [-3e38, 3e38]
    path = write_npz(tmp_path / "data.npz", features=features, stationary=np.array(stationary))
    with pytest.raises(
        ValueError, match=r"data\.npz: the trajectories of pair 3 differ by more than float32 holds"
    ):
        load(path)


def test_an_archive_with_a_name_twice_is_refused(tmp_path):
    import zipfile

    path = write_npz(tmp_path / "data.npz")
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr("labels.npy", b"")
    with pytest.raises(ValueError, match=r"'labels\.npy' twice"):
        load(path)


def test_an_archive_of_other_things_is_refused(tmp_path):
    import zipfile

    path = tmp_path / "data.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("notes.txt", "hello")
    with pytest.raises(ValueError, match="not arrays"):
        load(path)


def test_parquet_of_save_has_one_row_per_pair_and_is_no_table(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "data.parquet"
    save(path, make_data())
    assert pq.read_metadata(path).num_rows == 5
    with pytest.raises(ValueError, match="no column chosen_<name>"):
        load_table(path)
    pq.write_table(pq.read_table(path).drop_columns("actions"), path)
    with pytest.raises(ValueError, match="lacks the column actions"):
        load(path)


def test_parquet_with_fewer_rows_than_its_header_is_refused(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "data.parquet"
    save(path, make_data())
    for rows in (0, 3):
        pq.write_table(pq.read_table(path).slice(0, rows), tmp_path / "cut.parquet")
        with pytest.raises(ValueError, match="the header says"):
            load(tmp_path / "cut.parquet")


@pytest.mark.slow
def test_pyarrow_is_imported_only_for_parquet():
    code = "import sys, robust_rlhf_jax.preferences; sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
