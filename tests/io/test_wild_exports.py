"""Files as they occur in the wild are written back as they were: every row, column, order, type and metadata."""

import pytest
from wild import BY_NAME, CASES, few_fast, raw, reading

from robust_rlhf_jax.io import export, load_pairs

READABLE = few_fast(case for case in CASES if case.flags is not None)


@pytest.mark.parametrize("name", READABLE)
def test_what_is_exported_is_what_was_read(tmp_path, name):
    case = BY_NAME[name]
    (tmp_path / "in").mkdir()
    path = case.write(tmp_path / "in")
    options = {"featuriser": "format", **reading(case.flags)}
    pairs = load_pairs(path, **options)
    before, out = raw.content(path), tmp_path / exported_name(path)
    export(pairs, out, {})
    after = raw.content(out)
    assert raw.same(raw.rows_of(before, len(before) - case.lost) if case.lost else before, after)
    options.pop("split", None)
    assert case.differs(load_pairs(out, **options)) == ""


def exported_name(path) -> str:
    """The same suffixes; shards, a data set or one of two arrays become a folder."""
    is_folder = path.is_dir() or "*" in path.name or path.suffix == ".npy"
    return "out" if is_folder else "out." + path.name.split(".", 1)[1]


@pytest.mark.parametrize(
    "name", ["jsonl_gz", "jsonl_bz2", "jsonl_xz", "jsonl_zst", "csv_gz", "tsv_gz", "json_gz"]
)
def test_compressed_in_compressed_out(tmp_path, name):
    (tmp_path / "in").mkdir()
    path = BY_NAME[name].write(tmp_path / "in")
    pairs = load_pairs(path, featuriser="format")
    out = tmp_path / ("out." + path.name.split(".", 1)[1])
    export(pairs, out, {})
    assert (
        out.read_bytes()[:4] == path.read_bytes()[:4]
        if path.suffix != ".gz"
        else out.read_bytes()[:2] == b"\x1f\x8b"
    )
    with pytest.raises(ValueError, match=path.suffix.replace(".", r"\.")):
        export(pairs, tmp_path / path.name.removesuffix(path.suffix), {})


@pytest.mark.parametrize(
    "name", ["trl_explicit", "csv_semicolons", "parquet_view", "json_wrapped", "feather", "saved"]
)
def test_a_further_column_comes_last_and_dropped_rows_go(tmp_path, name):
    case = BY_NAME[name]
    (tmp_path / "in").mkdir()
    path = case.write(tmp_path / "in")
    pairs = load_pairs(path, featuriser="format")
    keep = [i % 3 != 1 for i in range(pairs.n_pairs)]
    out = tmp_path / exported_name(path)
    export(pairs, out, {"suspicion": [i / 100 for i in range(pairs.n_pairs)]}, keep=keep)
    again = load_pairs(out, featuriser="format")
    assert again.n_pairs == sum(keep)
    kept = [i for i, stays in enumerate(keep) if stays]
    assert again.texts.chosen == [pairs.texts.chosen[i] for i in kept]
    assert "suspicion" in again.unused


VOTED = (
    "argilla1_label",
    "argilla2_nested",
    "label_studio_json",
    "multipref_jsonl",
    "helpsteer3",
    "rater_columns",
    "long_table",
    "label_studio_csv",
    "annotated_twice",
)


@pytest.mark.parametrize("name", VOTED)
def test_what_several_raters_said_of_a_pair_is_exported_as_votes(tmp_path, name):
    case = BY_NAME[name]
    (tmp_path / "in").mkdir()
    path = case.write(tmp_path / "in")
    pairs = load_pairs(path, featuriser="format")
    out = tmp_path / exported_name(path)
    export(pairs, out, {"suspicion": [0.5] * pairs.n_pairs})
    found = raw.rows_as_dicts(raw.content(out))
    said = [tuple(int(float(row[f"votes_{way}"])) for way in ("first", "second", "tie")) for row in found]
    assert said == tallies(case)


def tallies(case) -> list[tuple[int, int, int]]:
    """For each row how often its first side won, its second, and neither."""
    counted = []
    for item in case.items():
        values = [value for _, value in item.votes]
        first, second = sum(value > 0 for value in values), sum(value < 0 for value in values)
        ties = len(values) - first - second
        if case.name == "annotated_twice":  # the first side of a row is the one that its rater chose
            counted += [(first, second, ties) if value > 0 else (second, first, ties) for value in values]
        else:
            rows = 1 if case.truth(case.items()[:1])[-1].row == 0 else len(values)
            counted += [(first, second, ties)] * rows
    return counted


def exported(tmp_path, text, **options):
    (tmp_path / "pairs.csv").write_text(text, encoding="utf-8")
    pairs = load_pairs(tmp_path / "pairs.csv", **options)
    export(pairs, tmp_path / "out.csv", {"suspicion": [0.5] * pairs.n_pairs})
    return raw.rows_as_dicts(raw.content(tmp_path / "out.csv"))


def test_the_pairs_of_a_choice_are_no_votes_of_several_raters(tmp_path):
    rows = [
        f"{task},p{task % 3},{alt},{alt * task},{int(alt == 1)}" for task in range(1, 9) for alt in (1, 2, 3)
    ]
    found = exported(tmp_path, "\n".join(["task,person,alt,price,choice", *rows]) + "\n")
    assert list(found[0]) == ["task", "person", "alt", "price", "choice", "suspicion"]


def test_votes_on_two_sides_of_numbers_are_counted_whatever_their_order(tmp_path):
    prices = range(3, 9)
    rows = [f"{price},{who},{price},9,1" for price in prices for who in ("ann", "ben")]
    rows += [
        f"{price},cem,9,{price},{1 + price % 2}" for price in prices
    ]  # on even prices against the others
    found = exported(tmp_path, "\n".join(["pair_id,rater,price_1,price_2,choice", *rows]) + "\n")
    said = [(row["votes_first"], row["votes_second"], row["votes_tie"]) for row in found]
    assert said[:4] == [("3", "0", "0")] * 2 + [("2", "1", "0")] * 2
    assert said[12:] == [("0", "3", "0"), ("1", "2", "0")] * 3
