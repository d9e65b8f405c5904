import builtins
import json
import os
import re

import numpy as np
import pytest

from robust_rlhf_jax import Pairs
from robust_rlhf_jax.preferences import load, load_table, with_table

COLUMNS = {
    "person": ["ann", "bob", "cy"],
    "chosen_price": [1, 2, 3],
    "rejected_time": [0.1, 0.2, 0.3],
    "rejected_price": [4, 5, 6],
    "chosen_time": [1e-3, -7.5, 1e10],
}
CHOSEN = np.array([[1, 1e-3], [2, -7.5], [3, 1e10]])
REJECTED = np.array([[4, 0.1], [5, 0.2], [6, 0.3]])


def write(path, columns):
    """Write columns in the format of the suffix."""
    if path.suffix == ".parquet":
        pa = pytest.importorskip("pyarrow")
        import pyarrow.parquet

        pyarrow.parquet.write_table(pa.table(columns), path)
        return path
    rows = list(zip(*columns.values(), strict=True))
    if path.suffix == ".csv":
        lines = [",".join(map(str, row)) for row in [tuple(columns), *rows]]
    else:
        lines = [json.dumps(dict(zip(columns, row, strict=True))) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(params=["csv", "jsonl", "parquet"])
def path(request, tmp_path):
    return tmp_path / f"choices.{request.param}"


def test_reads_names_and_features(path):
    names, chosen, rejected = load_table(write(path, COLUMNS))
    assert names == ("price", "time")
    np.testing.assert_array_equal(chosen, CHOSEN)
    np.testing.assert_array_equal(rejected, REJECTED)


def test_load_gives_pairs_and_a_policy_gets_its_table(path):
    pairs = load(str(write(path, COLUMNS)))
    assert isinstance(pairs, Pairs)
    assert pairs.names == ("price", "time")
    np.testing.assert_array_equal(pairs.differences(), CHOSEN - REJECTED)
    np.testing.assert_array_equal(pairs.labels, np.ones(3))
    data = with_table(pairs)
    np.testing.assert_array_equal(data.features[:, 1, 0], CHOSEN.astype(data.features.dtype))
    np.testing.assert_array_equal(data.features[:, 0, 0], REJECTED.astype(data.features.dtype))
    np.testing.assert_array_equal(data.labels, np.ones(3))


def test_a_tie_is_no_label_to_plan_on():
    pairs = Pairs(CHOSEN, REJECTED, strength=np.array([1.0, 0.0, 1.0]))
    with pytest.raises(
        ValueError, match=r"1 ties or pairs of weight 0, which say nothing: give pairs\.decided\(\)"
    ):
        with_table(pairs)
    assert with_table(pairs.decided()).n_pairs == 2


@pytest.mark.parametrize("lost", ["chosen_time", "rejected_price"])
def test_names_the_missing_column(path, lost):
    write(path, {k: v for k, v in COLUMNS.items() if k != lost})
    with pytest.raises(ValueError, match=f"lacks the column {lost}"):
        load_table(path)


def test_needs_some_feature(path):
    write(path, {"person": ["ann"], "price": [1.0]})
    with pytest.raises(ValueError, match="no column chosen_<name>"):
        load_table(path)


def test_names_the_column_that_is_not_numeric(path):
    write(path, COLUMNS | {"chosen_price": ["1", "cheap", "3"]})
    with pytest.raises(ValueError, match="column chosen_price is not numeric") as error:
        load_table(path)
    if path.suffix == ".csv":  # in a CSV file "1" is a number
        assert "row 2 holds 'cheap'" in str(error.value)


@pytest.mark.parametrize("value", [np.nan, np.inf, 10**400])
def test_names_the_entry_that_is_not_finite(path, value):
    if value == 10**400 and path.suffix == ".parquet":
        pytest.skip("no such integer in Parquet")
    write(path, COLUMNS | {"rejected_time": [0.1, 0.2, value]})
    with pytest.raises(
        ValueError, match=r"row 3, column rejected_time |rejected_time is not numeric \(row 3"
    ):
        load_table(path)


@pytest.mark.parametrize(
    ("value", "what"), [(1e39, "rejected_time is 1e+39"), (-1e300, "rejected_time is -1e+300")]
)
def test_names_the_entry_that_float32_cannot_hold(path, value, what):
    write(path, COLUMNS | {"rejected_time": [0.1, 0.2, value]})
    with pytest.raises(
        ValueError, match=rf"{path}: column {re.escape(what)} in row 3, more than a float holds"
    ):
        load(path)


def test_names_the_difference_that_overflows(path):
    """Both are finite: a table of NaN and exit status 0, once."""
    write(path, COLUMNS | {"chosen_time": [0.1, 3e38, 0.3], "rejected_time": [0.1, -3e38, 0.3]})
    with pytest.raises(
        ValueError, match=rf"{path}: column chosen − rejected time is 6e\+38 in row 2, more than"
    ):
        load(path)


def test_differences_that_are_flushed_to_zero_are_none(path):
    write(path, {"chosen_a": [1e-40, 2e-40], "rejected_a": [3e-40, 1e-40]})
    with pytest.raises(ValueError, match="as good as the same in float32, so no direction"):
        load(path)


def test_refuses_a_pipe_under_the_name_of_a_file(path):
    os.mkfifo(path)
    with pytest.raises(ValueError, match=r"is a stream, and no file .*: write it to a file first"):
        load_table(path)


@pytest.mark.parametrize("name", ["-", "/dev/stdin", "/dev/fd/63"])
def test_refuses_streams_by_their_usual_names(name):
    """As in `zcat pairs.jsonl.gz | robust-rlhf describe -`."""
    with pytest.raises(ValueError, match=rf"^{name} is a stream, .*: write it to a file first, .*\.jsonl"):
        load_table(name)


def test_an_unknown_suffix_is_told_what_to_do(tmp_path):
    (tmp_path / "pairs.jsonl.1").write_text("{}")
    with pytest.raises(
        ValueError, match=r"suffix '\.1' is not one of .*: give the file the suffix of what it holds"
    ):
        load_table(tmp_path / "pairs.jsonl.1")


def test_names_the_missing_entry(path):
    write(path, COLUMNS | {"rejected_time": [0.1, "" if path.suffix == ".csv" else None, 0.3]})
    with pytest.raises(ValueError, match=r"row 2, column rejected_time "):
        load_table(path)


def test_refuses_booleans(path):
    write(path, COLUMNS | {"rejected_time": [True, False, True]})
    with pytest.raises(ValueError, match="column rejected_time is not numeric"):
        load_table(path)


def test_refuses_a_table_without_rows(path):
    if path.suffix == ".jsonl":
        path.write_text("\n\n")
    else:
        pa = pytest.importorskip("pyarrow")
        empty = pa.array([], pa.float64()) if path.suffix == ".parquet" else []
        write(path, {"chosen_a": empty, "rejected_a": empty})
    with pytest.raises(ValueError, match="no rows"):
        load_table(path)


def test_refuses_an_empty_file(path):
    path.touch()
    with pytest.raises(ValueError, match="0 bytes"):
        load_table(path)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00\x01" * 5, b"{not json\n", b"[1, 2]\n"])
def test_refuses_a_corrupt_file(path, content):
    path.write_bytes(content)
    with pytest.raises(ValueError, match=str(path)):
        load_table(path)


def test_load_names_the_file_when_no_pair_differs(path):
    write(path, {"chosen_a": [1, 2], "rejected_a": [1, 2]})
    with pytest.raises(ValueError, match=rf"{path}: .*no direction"):
        load(path)


def test_missing_file_folder_and_unknown_suffix(path, tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        load_table(path)
    path.mkdir()
    with pytest.raises(ValueError, match="is a folder"):
        load_table(path)
    with pytest.raises(ValueError, match=r"suffix '.xlsx' is not one of .csv, .*; save the table as CSV\."):
        load_table(tmp_path / "choices.xlsx")


def test_csv_of_uneven_rows_or_twofold_columns(tmp_path):
    path = tmp_path / "choices.csv"
    path.write_text("chosen_a,rejected_a\n1,2\n\n1\n")
    with pytest.raises(ValueError, match="row 2 has 1 cells, the header 2"):
        load_table(path)
    path.write_text("chosen_a,rejected_a,chosen_a\n1,2,3\n")
    with pytest.raises(ValueError, match="column 'chosen_a' twice"):
        load_table(path)


def test_csv_as_spreadsheets_write_it(tmp_path):
    path = tmp_path / "choices.csv"
    path.write_bytes('\ufeff"chosen_a","rejected_a","note"\r\n"1"," 2","two\r\nlines"\r\n'.encode())
    names, chosen, rejected = load_table(path)
    assert (names, chosen.item(), rejected.item()) == (("a",), 1.0, 2.0)


def test_jsonl_keeps_line_separators_inside_texts(tmp_path):
    path = tmp_path / "choices.jsonl"
    path.write_text('{"chosen_a": 1, "rejected_a": 2, "note": "a\u2028b"}\n', encoding="utf-8")
    assert load_table(path)[1].item() == 1.0


def test_jsonl_column_that_only_later_rows_have(tmp_path):
    path = tmp_path / "choices.jsonl"
    path.write_text('{"chosen_a": 1, "rejected_a": 2}\n{"chosen_a": 1, "rejected_a": 2, "chosen_b": 1}\n')
    with pytest.raises(ValueError, match="lacks the column rejected_b"):
        load_table(path)


def test_parquet_reads_only_its_columns_whatever_folder_it_is_in(tmp_path):
    folder = tmp_path / "chosen_b=3"
    folder.mkdir()
    path = write(folder / "choices.parquet", {"chosen_a.x": [1], "rejected_a.x": [2], "note": ["n"]})
    assert load_table(path)[0] == ("a.x",)


def test_parquet_without_pyarrow_says_how_to_install_it(tmp_path, monkeypatch):
    path = write(tmp_path / "choices.parquet", COLUMNS)
    original = builtins.__import__

    def without_pyarrow(name, *args, **kwargs):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_pyarrow)
    with pytest.raises(ImportError, match=r"pip install 'robust-rlhf-jax\[cli\]'"):
        load_table(path)
