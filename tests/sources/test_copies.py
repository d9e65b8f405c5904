"""Copies of sources: rows, columns and metadata, bounded memory, and nothing half-written."""

import json

import numpy as np
import pytest
from parquet_of_lists import parquet_file

from robust_rlhf_jax.io import RewardHead
from robust_rlhf_jax.sources import ArraySource, ParquetSource, ShardSource, embedded, open_pairs, write_copy
from robust_rlhf_jax.sources.copies import check_copy

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
RNG = np.random.default_rng(2)
CHOSEN, REJECTED = RNG.normal(size=(2, 50, 3)).astype(np.float32)
KEEP = RNG.random(50) < 0.6
WEIGHT = RNG.random(50).astype(np.float32)


def file_of(path, rows=slice(None), **more):
    columns = {"id": np.arange(50), "chosen": CHOSEN, "rejected": REJECTED, **more}
    return parquet_file(path, {name: x[rows] for name, x in columns.items()}, rows=8)


def folder_of(path, dtype=np.float32, **beside):
    path.mkdir()
    for shard, rows in enumerate((slice(0, 20), slice(20, 24), slice(24, 50))):
        np.save(path / f"chosen{shard}.npy", CHOSEN[rows].astype(dtype))
        np.save(path / f"rejected{shard}.npy", REJECTED[rows].astype(dtype))
    for name, values in beside.items():
        np.save(path / f"{name}.npy", values)
    return path


def differences(source):
    return np.concatenate(list(source.blocks(7)))


def test_a_parquet_file_comes_back_with_columns(tmp_path):
    path = file_of(tmp_path / "pairs.parquet", weight=np.arange(50))
    copy = write_copy(open_pairs(path), tmp_path / "copy.parquet", {"weight": WEIGHT, "keep": KEEP})
    table = pq.read_table(copy)
    assert table.column_names == ["id", "chosen", "rejected", "weight", "keep"]
    assert table.schema.field("chosen").type == pq.read_schema(path).field("chosen").type
    np.testing.assert_array_equal(table["weight"].to_numpy(), WEIGHT)
    np.testing.assert_array_equal(table["keep"].to_numpy(), KEEP)
    np.testing.assert_array_equal(differences(open_pairs(copy)), CHOSEN - REJECTED)
    assert pq.ParquetFile(copy).num_row_groups == 7


def test_kept_rows_of_a_folder_of_files(tmp_path):
    (tmp_path / "all").mkdir()
    file_of(tmp_path / "all" / "a.parquet", slice(0, 30))
    file_of(tmp_path / "all" / "b.parquet", slice(30, 50))
    copy = write_copy(open_pairs(tmp_path / "all"), tmp_path / "some", {"weight": WEIGHT}, keep=KEEP)
    assert sorted(file.name for file in copy.iterdir()) == ["a.parquet", "b.parquet"]
    table = pa.concat_tables([pq.read_table(copy / name) for name in ("a.parquet", "b.parquet")])
    np.testing.assert_array_equal(table["id"].to_numpy(), np.flatnonzero(KEEP))
    np.testing.assert_array_equal(table["weight"].to_numpy(), WEIGHT[KEEP])
    np.testing.assert_array_equal(differences(open_pairs(copy)), (CHOSEN - REJECTED)[KEEP])


def test_metadata_and_compression_stay(tmp_path):
    features = {"id": {"dtype": "int64", "_type": "Value"}}
    table = pa.table({"id": [1, 2], "x": [[1.0], [2.0]]})
    table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    pq.write_table(table, tmp_path / "a.parquet", compression="zstd", use_dictionary=["id"])
    source = ParquetSource(tmp_path / "a.parquet", "x", None)
    copy = write_copy(source, tmp_path / "b.parquet", {"weight": np.ones(2, np.float32)})
    file = pq.ParquetFile(copy)
    columns = [file.metadata.row_group(0).column(j) for j in range(3)]
    assert {column.compression for column in columns} == {"ZSTD"}
    assert [column.has_dictionary_page for column in columns] == [True, False, False]
    grown = json.loads(file.schema_arrow.metadata[b"huggingface"])["info"]["features"]
    assert grown["weight"] == {"dtype": "float32", "_type": "Value"}
    assert grown["id"] == features["id"]


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_shards_come_back_as_stored_with_what_stands_beside_them(tmp_path, dtype):
    who, labels = np.repeat(["Ann", "Ben"], 25), np.where(np.arange(50) % 3, 1, -1)
    source = open_pairs(folder_of(tmp_path / "all", dtype, raters=who, labels=labels))
    copy = open_pairs(write_copy(source, tmp_path / "some", {"weights": WEIGHT}, keep=KEEP))
    np.testing.assert_array_equal(differences(copy), differences(source)[KEEP])
    np.testing.assert_array_equal(copy.raters, who[KEEP])
    np.testing.assert_array_equal(np.load(tmp_path / "some" / "rows.npy"), np.flatnonzero(KEEP))
    np.testing.assert_array_equal(np.load(tmp_path / "some" / "weights.npy"), WEIGHT[KEEP])
    assert np.load(tmp_path / "some" / "chosen0.npy").dtype == dtype


def test_a_shard_or_file_of_which_nothing_is_kept_is_left_away(tmp_path):
    source = open_pairs(folder_of(tmp_path / "all"))
    keep = np.arange(50) < 20
    copy = write_copy(source, tmp_path / "some", keep=keep)
    assert sorted(file.name for file in copy.iterdir()) == ["chosen0.npy", "rejected0.npy", "rows.npy"]
    assert open_pairs(copy).n_pairs == 20


def test_shards_of_two_byte_floats_of_numpy_stay(tmp_path):
    import jax.numpy as jnp

    source = open_pairs(folder_of(tmp_path / "all", jnp.bfloat16))
    copy = open_pairs(write_copy(source, tmp_path / "some", keep=KEEP))
    np.testing.assert_array_equal(differences(copy), differences(source)[KEEP])


def saved(folder, **arrays):
    """A file for each array, and their paths in the order given."""
    folder.mkdir(exist_ok=True)
    for name, values in arrays.items():
        np.save(folder / f"{name}.npy", values)
    return [folder / f"{name}.npy" for name in arrays]


def sources_by_hand(folder):
    """Shards whose own names would not open as the same pairs in the same order."""
    x, (a, b) = CHOSEN - REJECTED, (slice(0, 20), slice(20, 50))
    one = saved(folder / "one", good=CHOSEN, bad=REJECTED)
    first = saved(folder / "first", b=CHOSEN[a], a=CHOSEN[b])
    second = saved(folder / "second", b=REJECTED[a], a=REJECTED[b])
    apart = saved(folder / "apart", chosen_b=CHOSEN[a], chosen_a=CHOSEN[b])
    return {
        "other names": ShardSource(*one),
        "the same names": ShardSource(first, second),
        "chosen alone": ShardSource(apart, second),
        "names turned": ShardSource(*saved(folder / "turned", rejected=CHOSEN, chosen=REJECTED)),
        "ends that differ": ShardSource(*saved(folder / "ends", chosen1=CHOSEN, rejected2=REJECTED)),
        "differences in another order": ShardSource(saved(folder / "x", b=x[a], a=x[b])),
        "numbers not in order": ShardSource(saved(folder / "numbers", **{"a-10": x[a], "a-2": x[b]})),
        "a number that is no decimal": ShardSource(saved(folder / "square", **{"1²2": x})),
        "differences called chosen": ShardSource(saved(folder / "side", chosen=x)),
        "a name that is kept": ShardSource(saved(folder / "kept", weights=x)),
        "differences called like sides": ShardSource(saved(folder / "sides", lose=x[a], win=x[b])),
    }


@pytest.mark.parametrize("case", range(11))
def test_a_copy_opens_as_the_same_pairs_in_their_order(tmp_path, case):
    source = list(sources_by_hand(tmp_path).values())[case]
    copy = open_pairs(write_copy(source, tmp_path / "copy", keep=KEEP))
    np.testing.assert_array_equal(differences(copy), (CHOSEN - REJECTED)[KEEP])


def test_rows_and_ids_stay_those_of_the_original_file(tmp_path):
    rows, ids = np.arange(50) * 3, np.array([f"pair {i}" for i in range(50)])
    all_of_them = folder_of(tmp_path / "all", rows=rows, ids=ids)
    (all_of_them / "featuriser.safetensors").write_bytes(b"as it is")
    once = write_copy(open_pairs(all_of_them), tmp_path / "once", keep=KEEP)
    twice = write_copy(open_pairs(once), tmp_path / "twice", keep=np.arange(KEEP.sum()) % 2 == 0)
    for folder, kept in ((once, np.flatnonzero(KEEP)), (twice, np.flatnonzero(KEEP)[::2])):
        np.testing.assert_array_equal(np.load(folder / "rows.npy"), rows[kept])
        np.testing.assert_array_equal(np.load(folder / "ids.npy"), ids[kept])
        assert (folder / "featuriser.safetensors").read_bytes() == b"as it is"
    own = write_copy(
        open_pairs(once), tmp_path / "own", {"ids": np.arange(KEEP.sum()).astype(str).astype(object)}
    )
    assert np.load(own / "ids.npy")[:2].tolist() == ["0", "1"]


def test_rows_of_another_number_are_refused_before_any_work(tmp_path):
    source = open_pairs(folder_of(tmp_path / "all", rows=np.arange(49)))
    with pytest.raises(ValueError, match=r"rows.npy has 49 rows.*give a row for each pair"):
        check_copy(source, tmp_path / "copy", "--clean")


def test_a_head_fitted_to_a_copy_of_embedded_texts_scores_texts(tmp_path):
    pytest.importorskip("sklearn")
    sides = {
        side: [" ".join(RNG.choice(["a", "b c", "d?"], 5)) for _ in range(50)]
        for side in ("chosen", "rejected")
    }
    rows = [dict(zip(sides, texts, strict=True)) for texts in zip(*sides.values(), strict=True)]
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    source = embedded(tmp_path / "pairs.jsonl", tmp_path / "all", rows_per_shard=20)
    copy = write_copy(source, tmp_path / "some", keep=KEEP)
    made = RewardHead.load(copy / "featuriser.safetensors").featuriser
    apart = np.subtract(*(made.transform([""] * 50, texts) for texts in sides.values()))
    np.testing.assert_allclose(apart[KEEP], differences(open_pairs(copy)), atol=1e-5)


def test_names_that_are_in_order_by_their_numbers_stay(tmp_path):
    files = saved(tmp_path / "all", **{f"x-{i}": CHOSEN[4 * i : 4 * i + 4] for i in range(12)})
    copy = write_copy(open_pairs(tmp_path / "all"), tmp_path / "copy")
    assert {file.name for file in copy.iterdir()} == {file.name for file in files} | {"rows.npy"}
    np.testing.assert_array_equal(differences(open_pairs(copy)), CHOSEN[:48])


def test_bad_places_and_sources_are_refused_in_one_sentence(tmp_path):
    path = file_of(tmp_path / "a.parquet")
    one, shards = open_pairs(path), open_pairs(folder_of(tmp_path / "all"))
    for source, place, says in (
        (ArraySource(CHOSEN), tmp_path / "b", "come from no files"),
        (one, tmp_path / "b.csv", "ends in .parquet"),
        (one, path, "is where the pairs come from"),
        (one, tmp_path / "no" / "b.parquet", "make it first"),
        (shards, tmp_path / "all", "is where the pairs come from"),
        (shards, path, "a name without a suffix"),
    ):
        with pytest.raises(ValueError, match=says):
            write_copy(source, place)
    for keep, says in ((np.zeros(50, bool), "leaves no pair"), (np.ones(50), "a truth value for each")):
        with pytest.raises(ValueError, match=says):
            write_copy(one, tmp_path / "b.parquet", keep=keep)
    with pytest.raises(ValueError, match=r"price.npy has no place beside shards"):
        write_copy(shards, tmp_path / "b", {"price": WEIGHT})
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.parquet", "all"]


@pytest.mark.parametrize("name", ["rows", "labels", "groups", "raters"])
def test_what_the_source_has_beside_its_shards_is_no_column(tmp_path, name):
    shards = open_pairs(folder_of(tmp_path / "all", labels=np.where(np.arange(50) % 3, 1, -1)))
    with pytest.raises(
        ValueError, match=rf"^{name}.npy of a copy is that of the source: leave the column out"
    ):
        write_copy(shards, tmp_path / "b", {name: np.arange(50)})
    assert [file.name for file in tmp_path.iterdir()] == ["all"]


@pytest.mark.parametrize("values", [WEIGHT[:49], np.append(WEIGHT, 1), WEIGHT[:, None], 1.0])
def test_a_column_has_a_value_for_each_pair(tmp_path, values):
    shards, one = open_pairs(folder_of(tmp_path / "all")), open_pairs(file_of(tmp_path / "a.parquet"))
    for source, name, place in ((shards, "weights", "b"), (one, "weight", "b.parquet")):
        with pytest.raises(ValueError, match=rf"^The column {name} has shape .* each of the 50 pairs"):
            write_copy(source, tmp_path / place, {name: values})
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.parquet", "all"]


def test_a_file_that_has_changed_leaves_nothing(tmp_path):
    path = file_of(tmp_path / "a.parquet")
    source = open_pairs(path)
    file_of(path, slice(0, 40))
    with pytest.raises(ValueError, match="has changed since it was opened"):
        write_copy(source, tmp_path / "b.parquet")
    assert [file.name for file in tmp_path.iterdir()] == ["a.parquet"]
