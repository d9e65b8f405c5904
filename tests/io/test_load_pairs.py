"""Files of every format, made by pandas, pyarrow and datasets, read as pairs."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from robust_rlhf_jax.io import Columns, load_pairs

pd = pytest.importorskip("pandas")

N = 12
RNG = np.random.default_rng(0)
WORDS = ("alpha", "beta", "gamma", "delta", "tests", "good", "bad", "fine")
TEXTS = {
    "prompt": [f"Question {i}?" for i in range(N)],
    "chosen": [" ".join(RNG.choice(WORDS, 12)) + f" {i}" for i in range(N)],
    "rejected": [" ".join(RNG.choice(WORDS, 6)) + f" {i}" for i in range(N)],
}
NUMBERS = {f"{side}_{name}": RNG.normal(size=N) for side in ("chosen", "rejected") for name in ("a", "b")}


def as_messages(role, texts):
    return [[{"role": role, "content": text}] for text in texts]


def write(folder, form, columns):
    """`columns` as one file or folder, by other people's libraries."""
    path = folder / f"pairs.{form}"
    if form == "csv":
        pd.DataFrame(columns).to_csv(path, index=False)
    elif form == "jsonl":
        pd.DataFrame(columns).to_json(path, orient="records", lines=True)
    elif form == "parquet":
        pq.write_table(pa.table({k: list(v) for k, v in columns.items()}), path)
    else:
        datasets = pytest.importorskip("datasets")
        path = folder / "saved"
        datasets.Dataset.from_dict({k: list(v) for k, v in columns.items()}).save_to_disk(str(path))
    return path


FORMATS = ("csv", "jsonl", "parquet", "arrow")


@pytest.mark.parametrize("form", FORMATS)
def test_numeric_columns(tmp_path, form):
    pairs = load_pairs(write(tmp_path, form, NUMBERS | {"note": ["x"] * N}))
    assert (pairs.format, pairs.kind, pairs.names) == (form, "numeric", ("a", "b"))
    np.testing.assert_allclose(pairs.chosen[:, 1], NUMBERS["chosen_b"], rtol=1e-9)
    assert "note" in pairs.unused


@pytest.mark.parametrize("form", FORMATS)
def test_texts(tmp_path, form):
    pairs = load_pairs(write(tmp_path, form, TEXTS))
    assert pairs.kind == "texts"
    assert pairs.texts.prompt == TEXTS["prompt"]
    assert pairs.texts.rejected == TEXTS["rejected"]
    assert pairs.chosen.shape == (N, len(pairs.names))
    words = pairs.names.index("log_words")
    np.testing.assert_allclose(pairs.chosen[:, words], np.log1p([len(t.split()) for t in TEXTS["chosen"]]))


@pytest.mark.parametrize("form", ["jsonl", "parquet", "arrow"])
@pytest.mark.parametrize("inside", [True, False])
def test_messages_with_and_without_the_prompt_inside(tmp_path, form, inside):
    asked = as_messages("user", TEXTS["prompt"])
    sides = {
        side: [
            (a if inside else []) + b
            for a, b in zip(asked, as_messages("assistant", TEXTS[side]), strict=True)
        ]
        for side in ("chosen", "rejected")
    }
    pairs = load_pairs(write(tmp_path, form, sides if inside else {"prompt": asked} | sides))
    assert pairs.texts.prompt == TEXTS["prompt"]
    assert pairs.texts.chosen == TEXTS["chosen"]


def test_dialogues_in_one_string(tmp_path):
    head = "\n\nHuman: Hello\n\nAssistant: Hi\n\nHuman: Bye\n\nAssistant:"
    rows = {
        "chosen": [f"{head} So long {i}" for i in range(3)],
        "rejected": [f"{head} No {i}" for i in range(3)],
    }
    pairs = load_pairs(write(tmp_path, "jsonl", rows))
    assert pairs.texts.prompt[0] == head
    assert pairs.texts.chosen[1] == " So long 1"


@pytest.mark.parametrize("form", ["jsonl", "parquet", "arrow"])
def test_embeddings_as_lists(tmp_path, form):
    e = RNG.normal(size=(2, N, 5)).astype(np.float32)
    columns = {
        "chosen_embedding": e[0].tolist(),
        "rejected_embedding": e[1].tolist(),
        "prompt": TEXTS["prompt"],
    }
    pairs = load_pairs(write(tmp_path, form, columns))
    assert pairs.kind == "embeddings"
    np.testing.assert_allclose(pairs.rejected, e[1], rtol=1e-6)
    renamed = {"left": e[0].tolist(), "right": e[1].tolist()}
    path = write(tmp_path / ".." / tmp_path.name, "jsonl", renamed)
    other = load_pairs(path, columns=Columns(chosen="left", rejected="right"))
    np.testing.assert_allclose(other.chosen, e[0], rtol=1e-6)


def test_an_embedding_that_is_no_number_is_named_or_skipped(tmp_path):
    sides = [np.random.default_rng(i).normal(size=(N, 3)) for i in range(2)]
    sides[1][1, 2] = np.inf
    paths = tmp_path / "chosen.npy", tmp_path / "rejected.npy"
    for path, values in zip(paths, sides, strict=True):
        np.save(path, values)
    table = write(tmp_path, "jsonl", TEXTS)
    with pytest.raises(ValueError, match=r"row 2, column 3 of .*rejected\.npy is not a finite number"):
        load_pairs(table, embeddings=paths)
    assert load_pairs(table, embeddings=paths, skip_bad=1).n_pairs == N - 1
    with pytest.raises(ValueError, match="row 2, column 3 of the rejected side is not a finite number"):
        load_pairs(paths[0])
    alone = load_pairs(paths[0], skip_bad=1)
    assert alone.rows.tolist() == [0, *range(2, N)]
    assert [cell.row for cell in alone.bad] == [1]


def test_a_damaged_npy_header_is_refused(tmp_path):
    np.save(tmp_path / "chosen.npy", np.zeros((2, 2)))
    content = (tmp_path / "chosen.npy").read_bytes()
    (tmp_path / "chosen.npy").write_bytes(content.replace(b"}", b"("))
    with pytest.raises(ValueError, match=r"is not a \.npy file of numbers"):
        load_pairs(tmp_path / "chosen.npy", embeddings=(tmp_path / "chosen.npy", tmp_path / "chosen.npy"))


def test_a_message_that_is_nothing_is_refused(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"prompt": "p", "chosen": [null], "rejected": [{"role": "user", "content": "x"}]}\n')
    with pytest.raises(ValueError, match="row 1, column chosen holds a message without role and content"):
        load_pairs(path)


def test_embeddings_in_npy_files_are_mapped(tmp_path):
    e = RNG.normal(size=(2, N, 5)).astype(np.float32)
    for side, values in zip(("chosen", "rejected"), e, strict=True):
        np.save(tmp_path / f"my_{side}.npy", values)
    pairs = load_pairs(tmp_path / "my_chosen.npy")
    assert isinstance(pairs.chosen, np.memmap)
    np.testing.assert_array_equal(pairs.rejected, e[1])
    beside = load_pairs(
        write(tmp_path, "jsonl", TEXTS), embeddings=(tmp_path / "my_chosen.npy", tmp_path / "my_rejected.npy")
    )
    assert beside.texts is not None
    np.testing.assert_array_equal(beside.chosen, e[0])


def test_rewardbench_output_as_it_is(tmp_path):
    rows = {
        "prompt": TEXTS["prompt"], "results": [1] * N, "scores_chosen": RNG.normal(size=N),
        "scores_rejected": RNG.normal(size=N), "text_chosen": TEXTS["chosen"], "text_rejected": TEXTS["rejected"],
    }  # fmt: skip
    path = write(tmp_path, "jsonl", rows)
    pairs = load_pairs(path)
    assert (pairs.kind, pairs.names) == ("scores", ("score",))
    assert pairs.texts.chosen == TEXTS["chosen"]
    assert load_pairs(path, features="texts").kind == "texts"


def test_scores_of_several_models(tmp_path):
    rows = {f"score_{side}_{model}": RNG.normal(size=N) for side in ("chosen", "rejected") for model in "xy"}
    assert load_pairs(write(tmp_path, "csv", rows)).names == ("x", "y")


@pytest.mark.parametrize(
    ("labels", "meaning", "strength", "swapped"),
    [
        (["A", "b", "tie", " a "], {}, [1, 1, 0, 1], [False, True, False, False]),
        ([-3, 2, 0, 1], {"scale": (-3, 3)}, [3, 2, 0, 1], [False, True, False, True]),
        ([-3, 2, 0, 1], {"scale": (3, -3)}, [3, 2, 0, 1], [True, False, False, False]),
        (["0", "1", "1", "0"], {"first_is": "1"}, [1, 1, 1, 1], [True, False, False, True]),
        ([0.9, 0.5, 0.1, 1.0], {"scale": (1, 0)}, [0.8, 0, 0.8, 1], [False, False, True, False]),
        ([0, 1, 2, 2], {"scale": (0, 2)}, [1, 0, 1, 1], [False, False, True, True]),
        ([0, 1, 2, 2], {"first_is": "2", "tie_is": "1"}, [1, 0, 1, 1], [True, False, False, False]),
    ],
)
def test_labels_strengths_and_ties(tmp_path, labels, meaning, strength, swapped):
    rows = {"prompt": ["p"] * 4, "response_a": list("wxyz"), "response_b": list("abcd"), "preference": labels}
    path = tmp_path / "pairs.jsonl"
    pd.DataFrame(rows).to_json(path, orient="records", lines=True)
    pairs = load_pairs(path, columns=Columns(**meaning), featuriser="format")
    np.testing.assert_allclose(pairs.strength, strength, atol=1e-12)
    np.testing.assert_array_equal(pairs.swapped, swapped)
    assert pairs.texts.chosen[1] == ("x" if not swapped[1] else "b")


def test_raters_weights_and_a_column_of_ties(tmp_path):
    rows = TEXTS | {"who": ["ann", "bob"] * 6, "w": np.arange(N) / 2, "same": [True] + [False] * 11}
    pairs = load_pairs(write(tmp_path, "csv", rows), columns=Columns(rater="who", weight="w", tie="same"))
    assert pairs.raters[1] == "bob"
    assert pairs.weights[3] == 1.5
    np.testing.assert_array_equal(np.flatnonzero(pairs.ties), [0])


BAD = [
    ({"chosen": ""}, "row 2, column chosen holds no text"),
    ({"chosen": None}, "row 2, column chosen is missing"),
    ({"rejected": 7}, "row 2, column rejected holds 7, neither a text nor messages"),
    ({"rejected": [{"role": "user"}]}, "row 2, column rejected holds a message without"),
    ({"pair": 0}, "row 2, column pair repeats '0' of row 1"),
    ({"weight": -1}, "row 2, column weight is negative"),
    ({"weight": float("nan")}, "row 2, column weight is nan"),
    ({"label": "perhaps"}, "row 2, column label holds the unknown label 'perhaps'"),
]


@pytest.mark.parametrize(("damage", "sentence"), BAD)
def test_a_bad_row_is_named_or_skipped(tmp_path, damage, sentence):
    rows = [{k: v[i] for k, v in TEXTS.items()} | {"pair": i, "weight": 1.0, "label": "a"} for i in range(N)]
    rows[1] |= damage
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    columns = Columns(weight="weight", label="label", pair_id="pair")
    with pytest.raises(ValueError, match="pairs.jsonl: " + sentence.replace("(", r"\(")):
        load_pairs(path, columns=columns)
    pairs = load_pairs(path, columns=columns, skip_bad=1)
    np.testing.assert_array_equal(pairs.rows, [0, *range(2, N)])
    assert [cell.row for cell in pairs.bad] == [1]
    with pytest.raises(ValueError, match=r"--skip-bad 0\.01"):
        load_pairs(path, columns=columns, skip_bad=0.01)


def test_widths_of_embeddings_must_agree(tmp_path):
    path = tmp_path / "pairs.jsonl"
    rows = [{"chosen_e": [1.0, 2.0], "rejected_e": [1.0] * (2 + (i == 4))} for i in range(6)]
    path.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(ValueError, match="row 5, column rejected_e has 3 numbers, the first row 2"):
        load_pairs(path)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.csv", b"PAR1xxxx", "is Parquet, whatever its suffix says"),
        ("a.parquet", b"prompt,chosen\n", "does not begin as Parquet does"),
        ("a.jsonl", b"\x1f\x8b0000", "is compressed by gzip"),
        (
            "a.parquet",
            b"version https://git-lfs.github.com/spec/v1\noid sha256:4665a5ea\nsize 12\n",
            "holds no data but a pointer of Git LFS: fetch the data by git lfs pull",
        ),
        (
            "a.jsonl.gz",
            b"version https://git-lfs.github.com/spec/v1\noid sha256:4665a5ea\n",
            "a pointer of Git LFS",
        ),
        (
            "a.csv",
            b"\n<!DOCTYPE html>\n<html>",
            "holds no data but a page of the web: download the data themselves",
        ),
        ("a.zip", b"PK\x03\x04", "suffix '.zip' is not .*; unpack the archive"),
        ("a.tar.gz", b"\x1f\x8b0000", "; unpack the archive and give a file of it, or their folder"),
        ("a.pkl", b"\x80\x04", "; files of pickle may run code and are not read: write the table as Parquet"),
        ("a.jsonl", b'[{"chosen": "x"}]', "lacks the column rejected"),
        ("a.jsonl", b'{"chosen": "x"}\nnonsense', "lacks the column rejected"),
        ("a.jsonl", b'{"chosen": "x", "rejected": "y"}\nnonsense', "row 2 is not a JSON object"),
        ("a.csv", b"chosen,rejected\n1\n", "row 1 has 1 cells, the header 2"),
        ("a.csv", b"a,a\n1,2\n", "has the column 'a' twice"),
        ("a.csv", b"a,b\n1,2\n", "has no column chosen_<name> or rejected_<name>: "),
        ("a.csv", b"chosen_x\n1\n", "lacks the column rejected_x"),
        ("a.csv", b"response_a,response_b\n1,2\n", "but no label"),
        ("a.csv", b"chosen_x,rejected_x\n1,nan\n", "row 1, column rejected_x is nan, not a finite number"),
        (
            "a.csv",
            b"chosen_x,rejected_x\n1,two\n",
            "column rejected_x is not numeric \\(row 1 holds 'two'\\)",
        ),
        ("a.csv", b"chosen,rejected,prompt\n", "has no rows"),
    ],
)
def test_bad_files(tmp_path, name, content, sentence):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=sentence):
        load_pairs(tmp_path / name)


def test_a_folder_without_a_data_set_and_one_with_splits(tmp_path):
    with pytest.raises(ValueError, match="folder without an Arrow data set"):
        load_pairs(tmp_path)
    datasets = pytest.importorskip("datasets")
    datasets.DatasetDict({"train": datasets.Dataset.from_dict(TEXTS)}).save_to_disk(str(tmp_path / "d"))
    assert load_pairs(tmp_path / "d").n_pairs == load_pairs(tmp_path / "d" / "train").n_pairs == N
    two = {name: datasets.Dataset.from_dict(TEXTS) for name in ("test", "train")}
    datasets.DatasetDict(two).save_to_disk(str(tmp_path / "two"))
    with pytest.raises(ValueError, match="holds the splits test, train: choose one by --split train"):
        load_pairs(tmp_path / "two")
    assert load_pairs(tmp_path / "two", split="test").n_pairs == N


def test_a_pickled_array_is_refused(tmp_path):
    np.save(tmp_path / "chosen.npy", np.array([{}], object), allow_pickle=True)
    np.save(tmp_path / "rejected.npy", np.zeros((1, 2)))
    with pytest.raises(ValueError, match=r"not a \.npy file of numbers"):
        load_pairs(tmp_path / "chosen.npy")


def test_a_split_of_a_file_that_has_none_is_refused(tmp_path):
    file = tmp_path / "pairs.csv"
    file.write_text("prompt,chosen,rejected,split\nHi,Yes.,No,train\nBye,So long,What?,test\n")
    with pytest.raises(ValueError, match=r"one file and has no splits.*its column split says it of each row"):
        load_pairs(file, split="train", featuriser="format")
    shards = tmp_path / "shards"
    shards.mkdir()
    (shards / "0.csv").write_text("prompt,chosen,rejected\nHi,Yes.,No\n")
    with pytest.raises(ValueError, match="no files that are called after splits: leave --split out"):
        load_pairs(shards, split="train", featuriser="format")


def test_a_file_of_which_no_row_is_an_object_says_why(tmp_path):
    file = tmp_path / "pairs.jsonl"
    file.write_text("prompt,chosen,rejected\nHi,Yes.,No\n")
    with pytest.raises(ValueError, match="no row that can be read: row 1 is not a JSON object"):
        load_pairs(file)


@pytest.mark.parametrize("cell", ["$20", "20%", "20,5", "1 200"])
def test_numbers_with_marks_are_refused_beside_other_features(tmp_path, cell):
    file = tmp_path / "pairs.csv"
    file.write_text(f'chosen_price,rejected_price,chosen_time,rejected_time\n"{cell}","{cell}",1,2\n')
    with pytest.raises(ValueError, match=r"column chosen_price holds .* write numbers with a decimal point"):
        load_pairs(file)


@pytest.mark.parametrize("name", ["img/{}.png", "https://x.org/a b/{}.JPEG?size=3", "{}.wav"])
def test_names_of_pictures_are_no_texts(name):
    rows = {
        "left": [name.format(i) for i in range(6)],
        "right": [name.format(-i) for i in range(6)],
        "winner": ["left", "right"] * 3,
    }
    with pytest.raises(ValueError, match=r"the sides are names of files, such as .* by --embeddings"):
        load_pairs(rows)
    rows["left"][0] = "a text"
    assert load_pairs(rows, featuriser="format").n_pairs == 6


def test_columns_of_another_type_are_refused_in_a_sentence():
    rows = [{"chosen_x": 1, "rejected_x": 2}]
    with pytest.raises(TypeError, match=r"columns is of the type dict: give io.Columns\(label=…\)"):
        load_pairs(rows, columns={"label": "winner"})


@pytest.mark.parametrize("scale", ["1 0", (1,), (None, 0), (1, 2, 3)])
def test_a_scale_is_two_numbers(scale):
    with pytest.raises(ValueError, match=r"scale=.* must be two numbers"):
        Columns(scale=scale)


def test_alternatives_are_no_text():
    with pytest.raises(ValueError, match="alternatives='car bus' is one text: give a tuple of names"):
        Columns(alternatives="car bus")
