"""Parts are whole or absent, names tell batches apart, and a stopped sweep goes on with the same numbers."""

import dataclasses
import os

import jax
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from robust_rlhf_jax.lab.sweeps import engine, run_sweep
from robust_rlhf_jax.lab.sweeps.batches import Lanes
from robust_rlhf_jax.lab.sweeps.families import build_worlds, stack_worlds
from robust_rlhf_jax.lab.sweeps.sealed import MARK, Part, read_part
from robust_rlhf_jax.lab.sweeps.store import (
    PartStore,
    batch_name,
    opened,
    settings_in,
    settings_of_cells,
    world_digests,
)

ROWS = [{"family": "random", "seed": 1, "normalised_gap": 0.25, "status": "converged"}]


def lanes(epsilons=(0.1, 0.2)):
    n = len(epsilons)
    return Lanes(np.zeros(n, int), np.arange(n), np.arange(n), np.asarray(epsilons, np.float32))


def test_what_is_written_is_read(tmp_path):
    store = PartStore(tmp_path / "new" / "parts")
    assert store.read("a") is None
    store.write("a", ROWS)
    assert PartStore(tmp_path / "new" / "parts").read("a") == ROWS
    assert [path.name for path in (tmp_path / "new" / "parts").iterdir()] == ["a.parquet"]


def test_an_unfinished_part_is_no_part(tmp_path, monkeypatch):
    store = PartStore(tmp_path)

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("robust_rlhf_jax.unfinished.os.replace", killed)
    with pytest.raises(KeyboardInterrupt):
        store.write("a", ROWS)
    assert PartStore(tmp_path).read("a") is None


@pytest.mark.parametrize("damage", ["cut short", "empty", "something else", "added to"])
def test_a_part_that_cannot_be_read_is_no_part(tmp_path, damage):
    store = PartStore(tmp_path)
    store.write("a", ROWS)
    path = tmp_path / "a.parquet"
    whole = path.read_bytes()
    corrupted = {
        "cut short": whole[:-20],
        "empty": b"",
        "something else": b"PK" * 99,
        "added to": b" " + whole,
    }
    path.write_bytes(corrupted[damage])
    assert store.read("a") is None
    store.write("a", ROWS)
    assert store.read("a") == ROWS


@pytest.mark.slow
def test_no_flipped_bit_is_read(tmp_path):
    """Every bit of a whole part, those included that no reader looks at."""
    store = PartStore(tmp_path)
    store.write("a", ROWS)
    path = tmp_path / "a.parquet"
    content = bytearray(path.read_bytes())
    read = 0
    for bit in range(8 * len(content)):
        content[bit // 8] ^= 1 << bit % 8
        path.write_bytes(content)
        read += store.read("a") is not None
        content[bit // 8] ^= 1 << bit % 8
    print(f"bits flipped {8 * len(content)}, read as good {read}")
    assert read == 0
    path.write_bytes(content)
    assert store.read("a") == ROWS


def rewritten(path, change):
    table = pq.read_table(path)
    pq.write_table(change(table).replace_schema_metadata(table.schema.metadata), path)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            lambda path: rewritten(path, lambda table: table.rename_columns({"seed": "sead"})),
            "checksum is wrong",
        ),
        (lambda path: rewritten(path, lambda table: table.slice(0, 0)), "checksum is wrong"),
        (lambda path: pq.write_table(pa.Table.from_pylist(ROWS), path), "no checksum"),
        (lambda path: PartStore(path.parent).write("a", []), "no rows"),
        (lambda path: os.replace(path.with_name("b.parquet"), path), r"it says that it is b\.parquet"),
        (lambda path: (path.unlink(), os.mkfifo(path)), "no regular file"),
        (lambda path: (path.unlink(), path.mkdir()), "no regular file"),
    ],
    ids=["renamed column", "rows gone", "no seal", "no rows", "another's", "FIFO", "folder"],
)
def test_a_part_that_is_not_what_was_written_is_named_and_is_no_part(tmp_path, change, reason):
    store = PartStore(tmp_path)
    for name in "ab":
        store.write(name, ROWS)
    change(tmp_path / "a.parquet")
    assert store.read("a") is None
    with pytest.raises(ValueError, match=rf"a\.parquet is not a part as it was written \(.*{reason}\)"):
        read_part(tmp_path / "a.parquet")


def test_parts_say_what_they_are(tmp_path):
    PartStore(tmp_path).write("a", ROWS, "lower bound")
    assert read_part(tmp_path / "a.parquet") == Part("lower bound", "a", ROWS)


def test_a_name_in_the_rows_is_no_seal(tmp_path):
    rows = [{"family": (MARK + b"0" * 64).decode()}]
    PartStore(tmp_path).write("a", rows)
    assert PartStore(tmp_path).read("a") in (rows, None)


def test_a_path_is_a_store_and_another_thing_is_refused(small_config, tmp_path):
    for folder in (tmp_path / "parts", str(tmp_path / "parts")):
        opened(folder, small_config).write("a", ROWS)
        assert opened(folder, small_config).read("a") == ROWS
    assert settings_in(tmp_path / "parts") == [settings_of_cells(small_config)]
    assert opened(None, small_config).read("a") is None
    with pytest.raises(ValueError, match="store is of the type dict: give the path of a folder"):
        run_sweep(small_config, store={})


def test_names_tell_batches_apart(small_config, monkeypatch):
    worlds = stack_worlds(build_worlds("tiny", ("chain", "gridworld"), jax.random.key(0)))
    digests = world_digests(small_config, worlds)
    other_worlds = digests[::-1]

    def name(attack="push_features", algorithm="standard", cells=None, digests=digests, **change):
        config = dataclasses.replace(small_config, **change)
        return batch_name(config, digests, attack, algorithm, lanes() if cells is None else cells)

    assert name() == name(lanes=99) == name(seeds=7)
    others = [
        name(attack="flip_confident"),
        name(algorithm="uniform_coverage"),
        name(cells=lanes((0.1, 0.25))),
        name(digests=other_worlds),
        *[name(**change) for change in ({"seed": 1}, {"n_pairs": 601}, {"temperature": 2.0})],
    ]
    with jax.enable_x64(True):
        others.append(name())
    with monkeypatch.context() as edited:  # an attack that somebody works on
        edited.setattr("robust_rlhf_jax.lab.sweeps.store.source_digest", lambda: "of other code")
        others.append(name())
    assert len({name(), *others}) == 1 + len(others)


@pytest.mark.slow
def test_a_stopped_sweep_goes_on(small_config, small_sweep, tmp_path, monkeypatch):
    """Stopped after its third batch: the second run computes the others only, and the rows are those of one run."""
    config = dataclasses.replace(small_config, algorithms=("standard", "clean_reference"))
    solved = []
    solve = engine.solve_batch

    def counting(*args, **counts):
        if len(solved) == 3 and not stopped:
            raise KeyboardInterrupt
        solved.append(args[-1])
        return solve(*args, **counts)

    stopped = []
    monkeypatch.setattr(engine, "solve_batch", counting)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(config, store=PartStore(tmp_path))
    stopped.append(True)
    rows = run_sweep(config, store=PartStore(tmp_path)).rows
    n_batches = len(list(tmp_path.iterdir()))
    assert len(solved) == n_batches - 1 == 2 + 2 * 3  # a part for the label entropy
    wanted = [row for row in small_sweep[0].rows if row["algorithm"] in config.algorithms]
    key = lambda row: tuple(str(row[name]) for name in ("family", "attack", "epsilon", "seed", "algorithm"))  # noqa: E731
    assert sorted(rows, key=key) == sorted(wanted, key=key)
