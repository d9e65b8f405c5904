"""Texts in batches are those that `load_pairs` reads whole, and bad rows are named alike."""

import csv
import json

import numpy as np
import pytest

from robust_rlhf_jax.io import Columns, load_pairs
from robust_rlhf_jax.io import text_pairs as module
from robust_rlhf_jax.io.loading import read_pairs
from robust_rlhf_jax.io.text_pairs import text_pairs

WORDS = ("alpha", "beta", "gamma", "delta", "one two", "three\nlines")
N = 37


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(module, "BATCH", 5)


def rows_of(kind):
    rng = np.random.default_rng(1)
    rows = []
    for i in range(N):
        a, b = rng.choice(WORDS, 2, replace=False).tolist()
        row = {"prompt": f"Say {i % 4}"}
        if kind == "chosen":
            row |= {"chosen": a, "rejected": b}
        elif kind == "messages":
            said = {"role": "user", "content": row.pop("prompt")}
            row |= {
                side: [said, {"role": "assistant", "content": t}]
                for side, t in zip(("chosen", "rejected"), (a, b), strict=True)
            }
        else:
            row |= {"response_a": a, "response_b": b, "winner": ["a", "b", "tie"][rng.integers(3)]}
            row |= {"rater": f"r{i % 3}"} if kind == "raters" else {}
        rows.append(row)
    return rows


def jsonl(path, rows):
    path.write_text("\n".join(map(json.dumps, rows)))


def csv_file(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def parquet(path, rows):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=7)


WRITERS = {".jsonl": jsonl, ".csv": csv_file, ".parquet": parquet}


def everything(pairs, size=4):
    columns = [], [], []
    for texts in pairs.batches(size):
        for column, more in zip(columns, (texts.prompt, texts.chosen, texts.rejected), strict=True):
            column.extend(more)
    return columns


@pytest.mark.parametrize("suffix", WRITERS)
@pytest.mark.parametrize("kind", ["chosen", "label", "raters", "messages"])
def test_batches_have_the_texts_of_the_whole_file(tmp_path, suffix, kind):
    if suffix == ".csv" and kind == "messages":
        pytest.skip("cells of a CSV file are texts")
    path = tmp_path / f"pairs{suffix}"
    WRITERS[suffix](path, rows_of(kind))
    whole, found = load_pairs(path, featuriser="format").decided(), text_pairs(path)
    assert found.in_batches
    np.testing.assert_array_equal(found.rows, whole.rows)
    assert everything(found) == (whole.texts.prompt, whole.texts.chosen, whole.texts.rejected)
    assert everything(found, 1000) == everything(found)
    for name in ("raters", "ids"):
        np.testing.assert_array_equal(getattr(found, name), getattr(whole, name))
    if whole.groups is None:
        assert found.groups is None
    else:
        same = found.groups[:, None] == found.groups
        np.testing.assert_array_equal(same, whole.groups[:, None] == whole.groups)


def any_rows(rng):
    """Few texts, ids and raters, so that some repeat: among all rows, or among those that are left alone."""
    n, known = rng.integers(2, 14), {name: rng.random() < 0.5 for name in ("id", "rater", "weight", "prompt")}
    rows = []
    for i in range(n):
        a, b = rng.choice(WORDS, 2).tolist()
        row = {
            "response_a": a,
            "response_b": b,
            "winner": str(rng.choice(["a", "b", "tie", "?"], p=[0.4, 0.4, 0.15, 0.05])),
        }
        more = {
            "id": int(rng.integers(12 * n)) if rng.random() < 0.8 else i,
            "rater": f"r{rng.integers(3)}",
            "weight": float(rng.integers(1, 4) if rng.random() < 0.8 else rng.integers(-1, 1)),
            "prompt": f"Say {rng.integers(4)}",
        }
        rows.append(row | {name: value for name, value in more.items() if known[name]})
    return rows


def read_or_said(read):
    try:
        return read(), None
    except ValueError as error:
        return None, str(error)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", WRITERS)
def test_files_of_any_rows_say_the_same_in_batches(tmp_path, suffix):
    rng, path = np.random.default_rng(7), tmp_path / f"pairs{suffix}"
    in_batches = 0
    for _ in range(60):
        WRITERS[suffix](path, any_rows(rng))
        whole, wrong = read_or_said(lambda: read_pairs(path, None, "texts", None, 3).decided())
        found, said = read_or_said(lambda: text_pairs(path, skip_bad=3))
        if wrong is not None or not whole.n_pairs:
            assert said == (
                wrong or f"{path} has ties or pairs of weight 0 alone: no pair says what is preferred."
            )
            continue
        in_batches += found.in_batches
        assert everything(found) == (whole.texts.prompt, whole.texts.chosen, whole.texts.rejected)
        for name in ("rows", "raters", "ids", "groups"):
            np.testing.assert_array_equal(getattr(found, name), getattr(whole, name), err_msg=name)
    assert in_batches > 30


@pytest.mark.parametrize("suffix", WRITERS)
def test_an_id_that_a_tie_has_too_makes_ids_the_groups(tmp_path, suffix):
    path = tmp_path / f"pairs{suffix}"
    same = {"response_a": "x", "response_b": "y", "rater": "Ann"}
    WRITERS[suffix](
        path, [same | {"id": i, "winner": w} for i, w in ((1, "a"), (2, "b"), (2, "tie"), (3, "a"))]
    )
    assert (
        text_pairs(path).groups.tolist()
        == load_pairs(path, featuriser="format").decided().groups.tolist()
        == [0, 1, 2]
    )


@pytest.mark.parametrize("suffix", WRITERS)
def test_rows_without_an_id_belong_to_no_others(tmp_path, suffix):
    path = tmp_path / f"pairs{suffix}"
    same = {"response_a": "x", "response_b": "y", "winner": "a"}
    WRITERS[suffix](path, [same | {"id": one} for one in ("p", None, "q", "p", None)])
    found = text_pairs(path)
    assert found.in_batches
    assert found.ids.tolist() == ["p", "", "q", "p", ""]
    assert found.groups.tolist() == [0, 1, 2, 0, 3]


@pytest.mark.parametrize("suffix", WRITERS)
def test_bad_rows_are_refused_in_the_words_of_the_whole_file(tmp_path, suffix):
    rows = rows_of("label")
    rows[23]["winner"], rows[30]["response_a"] = "nobody knows", " "
    path = tmp_path / f"pairs{suffix}"
    WRITERS[suffix](path, rows)
    with pytest.raises(ValueError, match=r"row 24, column winner .*2 of 37 rows are unusable") as expected:
        load_pairs(path)
    with pytest.raises(ValueError, match="row 24") as found:
        text_pairs(path)
    assert str(found.value) == str(expected.value)
    assert text_pairs(path, skip_bad=2).n_pairs == load_pairs(path, skip_bad=2).decided().n_pairs


def test_lines_that_are_no_objects_are_named(tmp_path):
    path = tmp_path / "pairs.jsonl"
    jsonl(path, rows_of("chosen"))
    path.write_text(path.read_text() + '\n{"chosen": "cut')
    with pytest.raises(ValueError, match="row 38 is not a JSON object"):
        text_pairs(path)
    assert text_pairs(path, skip_bad=1).n_pairs == N


def test_what_takes_all_rows_is_read_whole(tmp_path):
    path = tmp_path / "pairs.json"
    path.write_text(json.dumps(rows_of("chosen")))
    found = text_pairs(path)
    assert not found.in_batches
    assert found.n_pairs == N
    late = rows_of("chosen")
    late[30]["rater"] = "Ann"  # a column of which the first batches know nothing
    jsonl(path.with_suffix(".jsonl"), late)
    assert not text_pairs(path.with_suffix(".jsonl")).in_batches


def test_columns_are_those_asked_for(tmp_path):
    path = tmp_path / "pairs.csv"
    csv_file(path, [{"left": f"a{i}", "right": f"b{i}", "verdict": "LR"[i % 2]} for i in range(N)])
    found = text_pairs(path, Columns(chosen="left", rejected="right", label="verdict", first_is="L"))
    assert found.in_batches
    assert everything(found)[1][:3] == ["a0", "b1", "a2"]


def test_ties_alone_are_refused(tmp_path):
    path = tmp_path / "pairs.csv"
    csv_file(path, [{"response_a": "x", "response_b": "y", "winner": "tie"}] * 3)
    with pytest.raises(ValueError, match="ties or pairs of weight 0 alone"):
        text_pairs(path)


def test_one_pair_of_texts_is_said_to_be_too_few():
    """Sides as long as each other differ in words alone, and of one pair these have no directions."""
    rows = [{"prompt": f"q {i}", "chosen": f"a good one {i}", "rejected": f"a bad one {i}"} for i in range(2)]
    with pytest.raises(
        ValueError, match="has one pair, whose words make no feature by themselves: give two pairs"
    ):
        load_pairs(rows[:1])
    assert load_pairs(rows).names == ("topic0",)
    with pytest.raises(ValueError, match="finds nothing in which the texts differ"):
        load_pairs([{"chosen": "the same", "rejected": "the same"}])
