"""Parquet files: columns, what is refused, and how much is in memory."""

import numpy as np
import pytest
from parquet_of_lists import parquet_file

from robust_rlhf_jax.sources import ParquetSource

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
X = np.arange(36.0, dtype=np.float32).reshape(12, 3)


def written(path, **columns):
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.int32()), pa.large_list(pa.float32()), pa.list_(pa.bool_(), 2), pa.list_(pa.uint8())]
)
def test_lists_of_any_numbers(tmp_path, kind):
    rows = np.array([[1, 0], [0, 1], [1, 1]], kind.value_type.to_pandas_dtype()).tolist()
    path = written(tmp_path / "a.parquet", x=pa.array(rows, kind))
    (block,) = ParquetSource(path, "x", None).blocks(5)
    assert block.dtype == (np.float64 if kind.value_type == pa.int32() else np.float32)
    np.testing.assert_array_equal(block, [[1, 0], [0, 1], [1, 1]])


@pytest.mark.parametrize(
    "group",
    [["Ann", "Ben", "Ann"], [3, 1, 3], pa.array(["Ann", "Ben", "Ann"]).dictionary_encode(), [0.5, 1, 0.5]],
)
def test_groups_of_any_values(tmp_path, group):
    path = written(tmp_path / "a.parquet", x=[[1.0], [2.0], [3.0]], who=group)
    expected = group if isinstance(group, list) else group.to_pylist()
    assert ParquetSource([path, path], "x", None, group="who").groups.tolist() == expected * 2


@pytest.mark.parametrize("labels", [[True, False, True], [1.0, -1.0, 1.0], pa.array([1, 0, 1], pa.int8())])
def test_labels_of_any_numbers(tmp_path, labels):
    path = written(tmp_path / "a.parquet", x=[[1.0], [2.0], [3.0]], label=labels)
    (block,) = ParquetSource([path, path], "x", None, "label").blocks(9)
    assert block.ravel().tolist() == [1, -2, 3] * 2


CELLS = {"chosen": [[1.0, 2.0], [3.0, 4.0]], "rejected": [[0.0, 0.0], [1.0, 1.0]]}


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (
            {"chosen": ["a", "b"]},
            "the column chosen holds string: give lists of numbers; robust-rlhf embed makes",
        ),
        ({"chosen": [1.0, 2.0]}, "the column chosen holds double: give lists of numbers"),
        ({"chosen": [["a"], ["b"]]}, "column chosen holds object: give float16"),
        (
            {"chosen": [[1.0], [2.0]]},
            "has 1 numbers in chosen and 2 numbers in rejected: give as many in both",
        ),
        ({"chosen": [[], []]}, "column chosen holds object"),
        (
            {"chosen": pa.array([[], []], pa.list_(pa.float32()))},
            r"column chosen has shape \(2, 0\): give \[N, k\]",
        ),
        (
            {"chosen": [None, [1.0, 2.0]]},
            r"column chosen has an empty cell in row 0 \(from 0\): give a value for every pair",
        ),
        ({"who": [["a"], ["b"]]}, "column who holds list<.*>: give one number or word for each pair"),
        ({"who": ["a", None]}, "column who has an empty cell"),
        ({"label": [1, None]}, "column label has an empty cell"),
        ({"label": [1, 2]}, r"labels\[1\] is 2: give 1"),
        ({"label": ["a", "b"]}, "labels holds <U1: give 1"),
    ],
)
def test_other_columns_are_refused(tmp_path, columns, said):
    path = written(tmp_path / "a.parquet", **(CELLS | columns))
    used = {name: ref for ref, name in [("who", "group"), ("label", "label")] if ref in columns}
    with pytest.raises(ValueError, match=said):
        ParquetSource(path, **used)


@pytest.mark.parametrize("cell", [None, [1.0, None], [1.0, 2.0, 3.0]])
def test_bad_cells_are_found_while_reading(tmp_path, cell):
    path = written(tmp_path / "a.parquet", **CELLS | {"rejected": [[0.0, 0.0], cell]})
    blocks = ParquetSource(path).blocks(2)
    with pytest.raises(ValueError, match=r"column rejected has (an empty cell|lists of 2 and of 3 numbers)"):
        next(blocks)


ANY, TWO = pa.list_(pa.float32()), pa.list_(pa.float32(), 2)


@pytest.mark.parametrize(
    ("kind", "cell", "said"),
    [
        (ANY, None, "an empty cell in row 13"),
        (TWO, None, "an empty cell in row 13"),
        (ANY, [1.0, None], "an empty cell in row 13"),
        (TWO, [1.0, None], "an empty cell in row 13"),
        (ANY, [1.0], "lists of 2 and of 1 numbers, in row 13"),
    ],
)
def test_a_bad_cell_is_found_in_its_row_of_the_file(tmp_path, kind, cell, said):
    rows = [[1.0, 2.0]] * 13 + [cell] + [[1.0, 2.0]] * 6
    table = pa.table({"chosen": pa.array(rows, kind), "rejected": pa.array([[1.0, 2.0]] * 20, kind)})
    pq.write_table(table, tmp_path / "b.parquet", row_group_size=4)
    parquet_file(
        tmp_path / "a.parquet", {"chosen": X[:, :2], "rejected": X[:, :2]}, fixed="size" in str(kind)
    )
    with pytest.raises(ValueError, match=rf"b.parquet: column chosen has {said} \(from 0\)"):
        list(ParquetSource(tmp_path).blocks(3))


def test_an_empty_cell_beside_is_found_in_its_row_of_the_file(tmp_path):
    table = pa.table({"chosen": [[1.0]] * 9, "who": ["a"] * 7 + [None, "b"]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=4)
    with pytest.raises(ValueError, match=r"column who has an empty cell in row 7 \(from 0\)"):
        ParquetSource(tmp_path / "a.parquet", rejected=None, group="who")


def test_columns_are_named(tmp_path):
    path = written(tmp_path / "a.parquet", **CELLS)
    with pytest.raises(
        ValueError, match="the column lost is missing, there are chosen, rejected: name the one"
    ):
        ParquetSource(path, rejected="lost")
    table = pa.Table.from_arrays([pa.array(CELLS["chosen"])] * 2, names=["chosen", "chosen"])
    pq.write_table(table, path)
    with pytest.raises(ValueError, match="the column chosen is there twice"):
        ParquetSource(path, rejected=None)


def test_files_must_be_of_one_kind(tmp_path):
    first = parquet_file(tmp_path / "a.parquet", {"x": X})
    for other, said in [
        (X[:, :2], "2 features in float, a.parquet 3"),
        (X.astype(float), "3 features in double"),
    ]:
        with pytest.raises(ValueError, match=rf"b\.parquet has {said}"):
            ParquetSource([first, parquet_file(tmp_path / "b.parquet", {"x": other})], "x", None)


def test_a_file_without_rows_is_refused(tmp_path):
    path = parquet_file(tmp_path / "a.parquet", {"x": X[:0]})
    with pytest.raises(ValueError, match=r"column x has shape \(0, 3\): give \[N, k\]"):
        ParquetSource(path, "x", None)


def test_missing_and_damaged_files_are_refused(tmp_path):
    path = tmp_path / "a.parquet"
    with pytest.raises(FileNotFoundError, match=r"a\.parquet does not exist: check the path\."):
        ParquetSource(path)
    path.write_bytes(b"PAR1 and no more")
    with pytest.raises(ValueError, match=r"a\.parquet is not a readable Parquet file"):
        ParquetSource(path)
    with pytest.raises(ValueError, match=r"has no \.parquet or \.pq file"):
        ParquetSource([])


def test_damage_is_found_while_reading(tmp_path):
    path = parquet_file(
        tmp_path / "a.parquet", {"x": np.random.default_rng(0).normal(size=(500, 8))}, rows=100
    )
    source = ParquetSource(path, "x", None)
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 2000] = bytes(2000)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.parquet is not a readable Parquet file"):
        list(source.blocks(10))


def test_a_file_that_changes_is_noticed(tmp_path):
    source = ParquetSource(parquet_file(tmp_path / "a.parquet", {"x": X}), "x", None)
    before = source.fingerprint()
    parquet_file(tmp_path / "a.parquet", {"x": X[:4]})
    assert source.fingerprint() != before
    with pytest.raises(ValueError, match=r"has changed since it was opened: open it again"):
        next(source.blocks(5))


def test_one_row_group_is_in_memory_at_a_time(tmp_path):
    x = np.random.default_rng(0).normal(size=(4000, 64)).astype(np.float32)
    path = parquet_file(tmp_path / "a.parquet", {"x": x, "other": x}, rows=200)
    source = ParquetSource(path, "x", None)
    found = [pa.total_allocated_bytes() for _ in source.blocks(64)]
    assert max(found) - min(found) <= 1.2 * x[:200].nbytes
