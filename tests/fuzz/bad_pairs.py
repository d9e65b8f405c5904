"""Preference files of texts, messages and embeddings that the command should refuse or survive, drawn by number."""

import bz2
import gzip
import io
import json
import lzma
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from bad_files import ROWS, damaged

TEXTS_NASTY = [
    "", " ", "\n", "\x1b[2J", "=1+1", "@SUM(A1)", "<script>alert(1)</script>", "\u202eabc", "\ud800", "\x00",
    "x" * 50_000, "é" * 300, "😀" * 40, '"', "a\tb", "nan", None, 3, [], {}, True,
]  # fmt: skip
WORDS = [
    "yes",
    "no",
    "maybe",
    "the",
    "a",
    "good",
    "bad",
    "answer",
    "is",
    "not",
    "very",
    "long",
    "short",
    "question",
]
MESSAGES_NASTY = [
    None, "text", [], [[]], {}, [{}], [{"role": "user"}], [{"content": "x"}], [{"role": 3, "content": "x"}],
    [{"role": "assistant", "content": None}], [{"role": "assistant", "content": ["x"]}], [None], [3],
]  # fmt: skip
VECTORS_NASTY = [
    None, [], [1.0], [1.0, 2.0, 3.0, 4.0, 5.0], "x", 3, [None, 1.0, 2.0, 3.0], ["a", "b", "c", "d"], [[1.0], [2.0]],
    [float("nan")] * 4, [float("inf"), 0.0, 0.0, 0.0], [1e308] * 4, [True] * 4, {}, [1e-320] * 4,
]  # fmt: skip


def sentence(chance: random.Random) -> str:
    return " ".join(chance.choices(WORDS, k=chance.randrange(2, 12)))


def damage(chance: random.Random, rows: list[dict], nasty: list, names: tuple[str, ...]) -> list[dict]:
    """Rows with a cell, a column, a name or their number wrong; or as they were."""
    name = chance.choice(names)
    how = chance.choice(["cell", "cell", "cell", "some", "column", "drop", "rename", "same", "rows", "none"])
    if how == "cell":
        rows[chance.randrange(len(rows))][name] = chance.choice(nasty)
    elif how == "some":
        for row in chance.sample(rows, 5):
            row[name] = chance.choice(nasty)
    elif how == "column":
        worst = chance.choice(nasty)
        rows = [row | {name: worst} for row in rows]
    elif how == "drop":
        rows = [{key: value for key, value in row.items() if key != name} for row in rows]
    elif how == "rename":
        rows = [{"x" if key == name else key: value for key, value in row.items()} for row in rows]
    elif how == "same":
        rows = [row | {names[-1]: row[names[-2]]} for row in rows]
    elif how == "rows":
        rows = rows[: chance.choice([0, 1, 2, 3])]
    return rows


def texts(chance: random.Random) -> list[dict]:
    rows = [
        {"prompt": sentence(chance), "chosen": sentence(chance), "rejected": sentence(chance)}
        for _ in range(ROWS)
    ]
    if chance.random() < 0.3:
        extra = chance.choice(["rater", "id", "weight", "tie", "label", "strength"])
        rows = [row | {extra: chance.choice(TEXTS_NASTY)} for row in rows]
    return damage(chance, rows, TEXTS_NASTY, ("prompt", "chosen", "rejected"))


def open_sides(chance: random.Random) -> list[dict]:
    """Two sides, and a label of one of the many kinds."""
    labels = chance.choice([("a", "b", "tie"), ("model_a", "model_b"), (0, 1), (1, 2), (-3, 2, 0), ("left", "right"),
                            (True, False), (0.2, 0.7), ("A is better", "B is slightly better")])  # fmt: skip
    name = chance.choice(
        ["label", "winner", "preference", "overall_preference", "labels", "votes", "annotator_1"]
    )
    rows = [
        {"prompt": sentence(chance), "response_a": sentence(chance), "response_b": sentence(chance),
         name: chance.choice(labels)}
        for _ in range(ROWS)
    ]  # fmt: skip
    return damage(chance, rows, [*TEXTS_NASTY, *MESSAGES_NASTY], ("prompt", "response_a", "response_b", name))


def rankings(chance: random.Random) -> list[dict]:
    """Several answers a row with scores, ranks, or something else."""
    name, by = (
        chance.choice(["completions", "answers", "responses"]),
        chance.choice(["scores", "ranks", "ranking"]),
    )
    rows = [
        {
            "prompt": sentence(chance),
            name: [sentence(chance) for _ in range(3)],
            by: chance.sample(range(3), 3),
        }
        for _ in range(ROWS)
    ]
    return damage(chance, rows, [*VECTORS_NASTY, *MESSAGES_NASTY], ("prompt", name, by))


def messages(chance: random.Random) -> list[dict]:
    def said(prompt):
        return [{"role": "user", "content": prompt}, {"role": "assistant", "content": sentence(chance)}]

    rows = [{"chosen": said(p), "rejected": said(p)} for p in (sentence(chance) for _ in range(ROWS))]
    return damage(chance, rows, MESSAGES_NASTY, ("chosen", "rejected"))


def embeddings(chance: random.Random) -> list[dict]:
    names = ("chosen_embedding", "rejected_embedding")
    rows = [{name: [round(chance.gauss(0, 1), 3) for _ in range(4)] for name in names} for _ in range(ROWS)]
    return damage(chance, rows, VECTORS_NASTY, names)


def answers(chance: random.Random) -> list[dict]:
    """Several answers to each prompt, without a judgement."""
    rows = [
        {"prompt": sentence(chance), "responses": [sentence(chance) for _ in range(chance.randrange(1, 4))]}
        for _ in range(8)
    ]
    nasty = [
        *VECTORS_NASTY,
        *MESSAGES_NASTY,
        ["", ""],
        ["\x1b[2J", "\ud800"],
        [3, True],
        [["a"], ["b"]],
        "one text",
    ]
    return damage(chance, rows, nasty, ("prompt", "responses"))


def votes(chance: random.Random) -> list[dict]:
    """Who won between two models."""
    labels = chance.choice(
        [("model_a", "model_b", "tie"), ("A", "B"), (0, 1), (1, 2), ("left", "right", "both bad")]
    )
    rows = []
    for _ in range(ROWS):
        first, second = chance.sample(["ant", "bee", "cat", "dog"], 2)
        rows.append({"model_a": first, "model_b": second, "winner": chance.choice(labels)})
        if chance.random() < 0.9:
            rows[-1]["judge"] = f"judge {chance.randrange(5)}"
    return damage(chance, rows, TEXTS_NASTY, ("model_a", "model_b", "winner"))


def decisions(chance: random.Random) -> bytes:
    """What the page of an audit saves, of `ROWS` pairs, with something wrong in it."""
    entries = [{"pair": n, "row": n, "decision": chance.choice(["keep", "drop"])} for n in range(1, ROWS, 3)]
    nasty = [*TEXTS_NASTY, 0, -1, ROWS + 1, 1.5, "1", float("nan"), 10**30, "Drop ", "DROP", "remove"]
    entries = damage(chance, entries, nasty, ("pair", "row", "decision"))
    if chance.random() < 0.4:
        lines = [",".join(str(cell) for cell in entry.values()) for entry in entries]
        content = "\n".join(["pair,row,decision", *lines, ""])
    else:
        found = {"schema": "robust_rlhf_jax.decisions", "version": 1, "pairs": ROWS, "decisions": entries}
        if chance.random() < 0.3:
            found[chance.choice(list(found))] = chance.choice([*nasty, entries])
        content = json.dumps(found)
    content = content.encode("utf-8", errors="surrogatepass")
    return damaged(chance, content) if chance.random() < 0.2 else content


def as_table(rows: list[dict]) -> pa.Table | None:
    """None where Arrow itself refuses such a mixture."""
    try:
        return pa.Table.from_pylist(rows)
    except (pa.ArrowException, UnicodeError, TypeError, OverflowError):
        return None


def write(chance: random.Random, rows: list[dict], stem: str = "data") -> Path:
    """As JSON lines, or as Parquet, CSV or an Arrow folder where Arrow takes the rows; now and then damaged."""
    table, form = as_table(rows), chance.choice(["jsonl", "jsonl", "parquet", "csv", "arrow"])
    if table is None or not rows:
        form = "jsonl"
    if form == "arrow":
        return write_folder(chance, table, Path(stem))
    sink = io.BytesIO()
    if form == "parquet":
        pq.write_table(table, sink)
    elif form == "csv" and not any(pa.types.is_nested(field.type) for field in table.schema):
        pa_csv.write_csv(table, sink)
    else:
        form = "jsonl"
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        sink.write(lines.encode("utf-8", errors="surrogatepass"))
    content, suffix = sink.getvalue(), form
    if form == "jsonl" and chance.random() < 0.2:
        content, suffix = b"[" + b",\n".join(content.splitlines()) + b"]", "json"
    if form in ("jsonl", "csv") and chance.random() < 0.2:
        pack, more = chance.choice([(gzip.compress, "gz"), (bz2.compress, "bz2"), (lzma.compress, "xz")])
        content, suffix = pack(content), f"{suffix}.{more}"
    path = Path(f"{stem}.{suffix}")
    path.write_bytes(damaged(chance, content) if chance.random() < 0.2 else content)
    return path


def write_folder(chance: random.Random, table: pa.Table, folder: Path) -> Path:
    """What `datasets` saves, one of its files perhaps damaged or gone."""
    folder.mkdir()
    name = "data-00000-of-00001.arrow"
    with pa.OSFile(str(folder / name), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name}]}))
    (folder / "dataset_info.json").write_text("{}")
    how = chance.choice(["none", "none", "damaged", "gone", "state", "outside"])
    if how == "damaged":
        (folder / name).write_bytes(damaged(chance, (folder / name).read_bytes()))
    elif how == "gone":
        (folder / name).unlink()
    elif how == "state":
        (folder / "state.json").write_bytes(damaged(chance, (folder / "state.json").read_bytes()))
    elif how == "outside":
        (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": "../../etc/passwd"}]}))
    return folder


def vectors(chance: random.Random) -> tuple[Path, Path]:
    """Two files of embeddings, which may not fit together."""
    paths = Path("chosen.npy"), Path("rejected.npy")
    for path in paths:
        rows, columns = chance.choice([ROWS, ROWS, ROWS, ROWS - 1, 0]), chance.choice([4, 4, 4, 5, 0])
        values = np.random.default_rng(chance.randrange(1000)).normal(size=(rows, columns))
        kind = chance.choice(["<f8", "<f4", "<f2", ">f4", "<i8", "?", "<c8", "<U3"])
        values = values.astype(kind)
        if chance.random() < 0.2 and values.size and "f" in kind:
            values[0, 0] = chance.choice([np.nan, np.inf])
        sink = io.BytesIO()
        np.save(sink, values)
        path.write_bytes(damaged(chance, sink.getvalue()) if chance.random() < 0.25 else sink.getvalue())
    return paths
