"""A path as a source: which forms there are."""

import string

import numpy as np
import pandas as pd
import pytest
from parquet_of_lists import parquet_file

from robust_rlhf_jax.sources import ParquetSource, ShardSource, open_pairs, write_shards

X = np.arange(12.0, dtype=np.float32).reshape(4, 3)


def first(source):
    return next(source.blocks(4))


def test_npy_files(tmp_path):
    paths = [tmp_path / "a.npy", tmp_path / "b.npy"]
    for path in paths:
        np.save(path, X)
    for given, n in [(paths[0], 4), (str(paths[1]), 4), (paths, 8), (tmp_path, 8)]:
        source = open_pairs(given)
        assert isinstance(source, ShardSource)
        assert source.n_pairs == n
        np.testing.assert_array_equal(first(source), X)


def test_parquet_files(tmp_path):
    labels = np.array([1, 0, 1, 0])
    columns = {"chosen": X, "rejected": X / 2, "label": labels, "group": np.arange(4), "more": labels}
    path = parquet_file(tmp_path / "a.parquet", columns)
    for given in (path, [path], tmp_path):
        source = open_pairs(given)
        assert isinstance(source, ParquetSource)
        np.testing.assert_array_equal(first(source), X / 2 * (2 * labels - 1)[:, None])
        assert source.groups.tolist() == [0, 1, 2, 3]


def test_parquet_files_of_other_columns_are_refused(tmp_path):
    path = parquet_file(tmp_path / "a.parquet", {"x": X})
    with pytest.raises(
        ValueError, match="has the columns x, and neither chosen and rejected nor differences"
    ):
        open_pairs(path)


def test_other_files_are_refused(tmp_path):
    (tmp_path / "a.csv").write_text("a\n1\n")
    for given in (tmp_path / "a.csv", [tmp_path / "a.csv"]):
        with pytest.raises(
            ValueError, match=r"a\.csv is no source of pairs: give a folder of \.npy shards, a"
        ):
            open_pairs(given)
    with pytest.raises(ValueError, match=r"has no \.npy or \.parquet or \.pq file"):
        open_pairs(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"lost\.npy does not exist: check the path\."):
        open_pairs(tmp_path / "lost.npy")


def test_a_folder_of_both_kinds_is_refused(tmp_path):
    np.save(tmp_path / "a.npy", X)
    (tmp_path / "b.parquet").write_bytes(b"PAR1")
    with pytest.raises(
        ValueError, match=r"is no source of pairs: it has .npy files and Parquet files, so move"
    ):
        open_pairs(tmp_path)


@pytest.mark.parametrize("name", ["more.npy", "more.parquet"])
def test_a_folder_called_like_a_file_is_named(tmp_path, name):
    np.save(tmp_path / "a.npy", X) if name.endswith("npy") else parquet_file(tmp_path / "a.parquet", SIDES)
    (tmp_path / name).mkdir()
    with pytest.raises(ValueError, match=rf"{name} is a folder among the files: give one folder of files"):
        open_pairs(tmp_path)


def test_words_that_were_pickled_are_refused_with_what_to_write(tmp_path):
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "groups.npy", np.array(["a", "b", "a", "b"], object))
    with pytest.raises(ValueError, match=r"groups.npy is not .* but of Python objects, .* dtype=str"):
        open_pairs(tmp_path)
    np.save(tmp_path / "groups.npy", np.array(["a", "b", "a", "b"], dtype=str))
    assert open_pairs(tmp_path).n_pairs == 4


def test_a_file_that_may_not_be_read_is_not_said_to_be_damaged(tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", X)

    def refused(path, mode):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(np.lib.format, "open_memmap", refused)
    with pytest.raises(PermissionError, match="Permission denied"):
        open_pairs(tmp_path / "x.npy")


def test_one_side_is_not_taken_for_differences(tmp_path):
    np.save(tmp_path / "chosen.npy", X)
    np.save(tmp_path / "rejected.npy", X)
    for name in ("chosen", "rejected"):
        with pytest.raises(
            ValueError, match="has one side of pairs: give its folder, or ShardSource both sides"
        ):
            open_pairs(tmp_path / f"{name}.npy")
    assert not first(open_pairs(tmp_path)).any()


@pytest.mark.parametrize(
    "names",
    [
        ("Chosen", "Rejected"),
        ("train_chosen-0", "train_rejected-0"),
        ("embeddingsChosen", "embeddingsRejected"),
        ("y_w", "y_l"),
        ("winner", "loser"),
        ("preferred_2", "dispreferred_2"),
        ("diffusion_winner", "diffusion_loser"),
    ],
)
def test_sides_by_other_names_are_not_taken_for_differences(tmp_path, names):
    for name in names:
        np.save(tmp_path / f"{name}.npy", X)
    with pytest.raises(
        ValueError, match=r"look like the two sides of pairs: call such files chosen….npy and"
    ):
        open_pairs(tmp_path)
    with pytest.raises(
        ValueError, match=rf"{names[0]}.npy has one side of pairs: give its folder, or ShardSource"
    ):
        open_pairs([tmp_path / f"{name}.npy" for name in names])


def test_a_file_called_after_one_side_is_not_taken_for_differences(tmp_path):
    np.save(tmp_path / "train-chosen.npy", X)
    with pytest.raises(
        ValueError, match=r"has train-chosen.npy and no partner of it: call the files of the two"
    ):
        open_pairs(tmp_path)
    with pytest.raises(ValueError, match=r"train-chosen.npy has one side of pairs: give its folder"):
        open_pairs(tmp_path / "train-chosen.npy")


@pytest.mark.parametrize(
    "names",
    [
        ("a", "b"),
        ("diff_chosen", "x"),
        ("without_rejected_rows", "y"),
        ("first", "second"),
        ("w", "x"),
        ("k", "l", "w"),
        [f"part-{letter}" for letter in string.ascii_lowercase],
        ("delta_w", "delta_l"),
        ("differences_positive", "differences_negative"),
    ],
)
def test_other_names_are_of_differences(tmp_path, names):
    for name in names:
        np.save(tmp_path / f"{name}.npy", X)
    assert open_pairs(tmp_path).n_pairs == len(names) * len(X)


def test_raters_beside_shards_are_read_and_are_the_groups(tmp_path):
    x, who = np.ones((6, 2), np.float32), np.array(["Ann", "Ben"] * 3)
    for name, values in (("chosen", x), ("rejected", 0 * x), ("raters", who)):
        np.save(tmp_path / f"{name}.npy", values)
    source = open_pairs(tmp_path)
    np.testing.assert_array_equal(source.raters, who)
    np.testing.assert_array_equal(source.groups, who)
    np.save(tmp_path / "groups.npy", np.arange(6))
    both = open_pairs(tmp_path)
    np.testing.assert_array_equal(both.raters, who)
    np.testing.assert_array_equal(both.groups, np.arange(6))
    again = write_shards(both, tmp_path / "shards", rows_per_shard=4)
    np.testing.assert_array_equal(again.raters, who)
    np.testing.assert_array_equal(again.groups, np.arange(6))


def test_the_column_of_raters_is_read(tmp_path):
    columns = {"chosen": np.ones((4, 2)), "rejected": np.zeros((4, 2)), "rater": np.array([3, 1, 3, 2])}
    source = open_pairs(parquet_file(tmp_path / "a.parquet", columns))
    np.testing.assert_array_equal(source.raters, [3, 1, 3, 2])
    np.testing.assert_array_equal(source.groups, [3, 1, 3, 2])


def test_numbers_in_names_count_by_value(tmp_path):
    for number in range(12):
        np.save(tmp_path / f"chosen-{number}.npy", np.full((1, 1), number, np.float32))
        np.save(tmp_path / f"rejected-{number}.npy", np.zeros((1, 1), np.float32))
    np.testing.assert_array_equal(np.concatenate(list(open_pairs(tmp_path).blocks(5)))[:, 0], np.arange(12))


@pytest.mark.parametrize("name", ["label", "labels", "Label", "LABELS"])
def test_labels_of_parquet_in_the_singular_and_the_plural(tmp_path, name):
    pytest.importorskip("pyarrow")
    sides = {"chosen": np.ones((4, 1), np.float32), "rejected": np.zeros((4, 1), np.float32)}
    path = parquet_file(tmp_path / "pairs.parquet", {**sides, name: np.array([1, -1, 1, -1])})
    np.testing.assert_array_equal(np.concatenate(list(open_pairs(path).blocks(9)))[:, 0], [1, -1, 1, -1])


def test_an_embedding_that_is_not_finished_is_refused(tmp_path):
    folder = tmp_path / "shards.partial"
    folder.mkdir()
    np.save(folder / "chosen-00000.npy", np.ones((2, 1), np.float32))
    np.save(folder / "rejected-00000.npy", np.zeros((2, 1), np.float32))
    (folder / "embedding.json").write_text("{}")
    with pytest.raises(ValueError, match="is not finished: run the same robust-rlhf embed again"):
        open_pairs(folder)


def test_bits_of_bfloat16_are_not_taken_for_numbers(tmp_path):
    np.save(tmp_path / "pairs.npy", np.ones((2, 1), np.uint16))
    with pytest.raises(ValueError, match="holds uint16: view bits of bfloat16 as that type"):
        open_pairs(tmp_path / "pairs.npy")


def test_a_label_by_another_name_is_not_left_unread(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"chosen": [[1.0], [2.0]], "rejected": [[0.0], [5.0]], "winner": ["chosen", "rejected"]}
    pq.write_table(pa.table(columns), tmp_path / "pairs.parquet")
    with pytest.raises(ValueError, match="column winner could say which option won"):
        open_pairs(tmp_path / "pairs.parquet")
    pq.write_table(pa.table(columns | {"label": [1, -1]}), tmp_path / "pairs.parquet")
    assert [block.tolist() for block in open_pairs(tmp_path / "pairs.parquet").blocks(2)] == [[[1.0], [3.0]]]


SIDES = {"chosen": np.ones((4, 1), np.float32), "rejected": np.zeros((4, 1), np.float32)}
BOTH = np.array([1, -1, 1, -1])


@pytest.mark.parametrize(
    "labels",
    [BOTH, (BOTH + 1) / 2, BOTH > 0, np.array(["A", "B", "tie", "A"]), np.array([1, np.nan, -1, np.nan])],
)
@pytest.mark.parametrize("name", ["target", "pref", "Better Response", "y"])
def test_what_could_be_labels_is_not_left_unread(tmp_path, name, labels):
    path = parquet_file(tmp_path / "pairs.parquet", {**SIDES, name: labels})
    with pytest.raises(ValueError, match=f"column {name} could say which option won"):
        open_pairs(path)
    assert open_pairs(parquet_file(path, {**SIDES, name: labels, "label": BOTH})).n_pairs == 4


@pytest.mark.parametrize("values", [np.ones(4), np.arange(4) / 3, np.array(list("wxyz"))])
def test_a_column_that_holds_no_labels_of_both_sides_may_be_called_so(tmp_path, values):
    path = parquet_file(tmp_path / "pairs.parquet", {**SIDES, "target": values})
    np.testing.assert_array_equal(first(open_pairs(path)), np.ones((4, 1)))


def test_a_strength_without_a_sign_is_no_label(tmp_path):
    path = parquet_file(tmp_path / "pairs.parquet", {**SIDES, "preference_strength": np.array([1, 2, 2, 1])})
    np.testing.assert_array_equal(first(open_pairs(path)), np.ones((4, 1)))
    parquet_file(path, {**SIDES, "preference_strength": BOTH})
    with pytest.raises(ValueError, match="column preference_strength could say which option won"):
        open_pairs(path)


@pytest.mark.parametrize("name", ["label", "Labels", "rater", "group"])
@pytest.mark.parametrize("where", ["a", "b"])
def test_a_column_that_only_one_file_has_is_not_left_unread(tmp_path, name, where):
    for file in "ab":
        parquet_file(tmp_path / f"{file}.parquet", SIDES | ({name: BOTH} if file == where else {}))
    other = "b" if where == "a" else "a"
    with pytest.raises(
        ValueError, match=rf"{other}.parquet has no column {name}, and .*{where}.parquet has one"
    ):
        open_pairs(tmp_path)


def test_a_label_by_another_name_in_a_later_file_is_not_left_unread(tmp_path):
    parquet_file(tmp_path / "a.parquet", SIDES)
    parquet_file(tmp_path / "b.parquet", SIDES | {"winner": BOTH})
    with pytest.raises(ValueError, match=r"b.parquet: column winner could say which option won"):
        open_pairs(tmp_path)


def test_raters_in_capitals_are_read(tmp_path):
    source = open_pairs(parquet_file(tmp_path / "a.parquet", SIDES | {"Rater": np.array([3, 1, 3, 2])}))
    assert isinstance(source, ParquetSource)
    np.testing.assert_array_equal(source.raters, [3, 1, 3, 2])


@pytest.mark.parametrize("given", [np.ones((4, 2)), pd.DataFrame(np.ones((4, 2)))])
def test_what_is_in_memory_is_no_path(given):
    with pytest.raises(
        TypeError, match=rf"^path is of the type {type(given).__name__}: give a path; .* ArraySource"
    ):
        open_pairs(given)
