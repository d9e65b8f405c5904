"""Rows that a program holds are read as the file of the same rows is."""

from pathlib import Path

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import wild
from wild import stores
from wild.case import reading

from robust_rlhf_jax import load
from robust_rlhf_jax.io import Columns, export, load_pairs

TEXTS = [
    {"prompt": f"q{i}", "chosen": f"yes {i}", "rejected": "no " * (1 + i % 3), "rater": f"r{i % 2}"}
    for i in range(1, 9)
]
# In how many ways a program holds rows.
WAYS = {
    "rows": lambda rows: rows,
    "columns": lambda rows: {name: [row[name] for row in rows] for name in rows[0]},
    "data frame": pd.DataFrame,
    "Arrow table": pa.Table.from_pylist,
    "data set": datasets.Dataset.from_list,
}


def read(source, flags):
    try:
        return load_pairs(source, featuriser="format", **reading(flags or {})), ""
    except ValueError as error:
        return None, str(error)


def assert_same(found, wanted):
    assert found.texts == wanted.texts
    for name in ("chosen", "rejected", "labels", "strength", "rows"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))
    for name in ("raters", "weights", "ids", "groups"):
        mine, other = getattr(found, name), getattr(wanted, name)
        assert (mine is None) == (other is None)
        assert mine is None or (mine == other).all()


@pytest.mark.parametrize("name", wild.few_fast())
def test_rows_are_read_as_a_file_of_lines(name, tmp_path):
    """Files of every schema: read alike, or refused in the same words."""
    case = wild.BY_NAME[name]
    rows = case.encode(case.items())
    if not isinstance(rows, list):
        pytest.skip("its store makes the columns")
    try:
        path = stores.jsonl()(tmp_path, rows)
    except TypeError:
        pytest.skip("its cells are no JSON")
    flags = {key: value for key, value in (case.flags or {}).items() if key not in ("--split", "--encoding")}
    (found, refused), (wanted, sentence) = read(rows, flags), read(path, flags)
    assert refused == sentence.replace(str(path), "the data set")
    assert (found is None) == (wanted is None)
    if found is not None:
        assert_same(found, wanted)


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_holding_rows_gives_the_same(way):
    held = WAYS[way](TEXTS)
    pairs = load_pairs(held, featuriser="format")
    assert_same(pairs, load_pairs(TEXTS, featuriser="format"))
    assert pairs.description.container == way
    assert pairs.raters.tolist() == ["r1", "r0"] * 4


@pytest.mark.parametrize("way", WAYS)
def test_numbers_and_embeddings(way):
    rng = np.random.default_rng(0)
    numbers = [
        {"chosen_price": a, "rejected_price": b, "label": 1 - i % 2}
        for i, (a, b) in enumerate(rng.random((6, 2)))
    ]
    pairs = load_pairs(WAYS[way](numbers), columns=Columns(label="label", first_is="1"))
    want = np.array(
        [(row["chosen_price"] - row["rejected_price"]) * (1 if row["label"] else -1) for row in numbers]
    )
    np.testing.assert_allclose(pairs.preferred_differences()[:, 0], want)
    vectors = [{"chosen": rng.random(3).tolist(), "rejected": rng.random(3).tolist()} for _ in range(5)]
    pairs = load(WAYS[way](vectors))
    np.testing.assert_allclose(pairs.chosen, [row["chosen"] for row in vectors])


def test_arrays_are_columns():
    x = np.arange(12.0).reshape(4, 3)
    pairs = load({"chosen": x, "rejected": x[::-1]})
    np.testing.assert_array_equal(pairs.chosen, x)
    frame = pd.DataFrame({"chosen": list(x), "rejected": list(x[::-1])})  # an array in each cell
    np.testing.assert_array_equal(load(frame).chosen, x)


def test_a_selection_of_a_data_set_keeps_its_order_and_rows():
    whole = datasets.Dataset.from_list(TEXTS)
    some = whole.shuffle(seed=1).select(range(5))
    pairs = load_pairs(some, featuriser="format")
    assert pairs.texts.prompt == some["prompt"][:]
    assert some.select(pairs.rows[[3]])["prompt"][:] == [pairs.texts.prompt[3]]


def test_class_labels_are_words():
    rows = [{"prompt": r["prompt"], "response_a": r["chosen"], "response_b": r["rejected"], "winner": i % 2}
            for i, r in enumerate(TEXTS)]  # fmt: skip
    labels = datasets.ClassLabel(names=["response_a", "response_b"])
    found = load_pairs(datasets.Dataset.from_list(rows).cast_column("winner", labels), featuriser="format")
    assert found.labels.tolist() == [1, -1] * 4


@pytest.mark.parametrize("nothing", [None, float("nan"), pd.NA])
def test_missing_cells_of_frames_are_missing(nothing):
    frame = pd.DataFrame(TEXTS)
    frame.loc[3, "chosen"] = nothing
    with pytest.raises(ValueError, match=r"the data set: row 4, column chosen is missing"):
        load_pairs(frame)
    assert load_pairs(frame, skip_bad=1, featuriser="format").n_pairs == len(TEXTS) - 1


def test_splits_are_chosen():
    train, test = datasets.Dataset.from_list(TEXTS), datasets.Dataset.from_list(TEXTS[:3])
    both = datasets.DatasetDict(train=train, test=test)
    assert load_pairs(both, split="test", featuriser="format").n_pairs == 3
    assert load_pairs(datasets.DatasetDict(train=train), featuriser="format").n_pairs == len(TEXTS)
    for split, said in (
        (None, "choose one by split='train'"),
        ("dev", "has no split 'dev': it holds train, test"),
    ):
        with pytest.raises(ValueError, match=said):
            load_pairs(both, split=split)
    with pytest.raises(ValueError, match="has no splits"):
        load_pairs(train, split="train")


@pytest.mark.parametrize(
    ("held", "error", "said"),
    [
        (5, TypeError, "of the type int: give the path of a file, a data frame"),
        ([1, 2], TypeError, "of the type list"),
        (datasets.Dataset.from_list(TEXTS).to_iterable_dataset(), TypeError, "of the type IterableDataset"),
        ([], ValueError, "the data set has no rows"),
        ({"chosen": ["a", "b"], "rejected": ["c"]}, ValueError, "column rejected has 1 cells and another 2"),
        (
            pd.DataFrame([[1.0, 2.0]], columns=["chosen_x", "chosen_x"]),
            ValueError,
            "'chosen_x' is there twice",
        ),
    ],
    ids=["number", "list of numbers", "stream", "nothing", "uneven", "twice"],
)
def test_what_holds_no_rows_is_one_sentence(held, error, said):
    with pytest.raises(error, match=said):
        load_pairs(held)


def test_no_file_is_written_again(tmp_path):
    with pytest.raises(ValueError, match="is in memory, so no file is written again"):
        export(load_pairs(TEXTS, featuriser="format"), tmp_path / "copy.csv", {})


@pytest.mark.slow
def test_the_lines_of_the_page_drop_what_is_flagged():
    page = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
    lines = page.split("### Rows in memory")[1].split("```python\n")[1].split("```")[0]
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 2, 2))
    won = (x[:, 0] - x[:, 1]) @ [2.0, -1.0] + rng.logistic(size=600) > 0
    x[~won] = x[~won, ::-1]
    x[:60] = [[-1.0, 1.0], [1.0, -1.0]]  # planted: the worse one was chosen
    dataset = datasets.Dataset.from_dict({"chosen": x[:, 0].tolist(), "rejected": x[:, 1].tolist()})
    names = {"dataset": dataset}
    exec(lines, names)
    suspects = set(names["suspects"].tolist())
    assert suspects <= set(range(60))
    assert len(suspects) >= 55
    assert names["kept"].num_rows == 600 - len(suspects)
