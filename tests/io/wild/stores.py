"""Containers: each writes rows into a folder, by the libraries that people use, and returns the path to read."""

import bz2
import csv
import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

Rows = list[dict]
OPENERS = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


def _lines(rows: Rows) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def put(path: Path, content: bytes) -> Path:
    """Compressed where the suffix says so."""
    suffix = path.suffix
    if suffix in OPENERS:
        with OPENERS[suffix](path, "wb") as file:
            file.write(content)
    elif suffix == ".zst":
        with pa.CompressedOutputStream(str(path), "zstd") as file:
            file.write(content)
    else:
        path.write_bytes(content)
    return path


def jsonl(name: str = "pairs.jsonl", end: str = "\n") -> Callable[[Path, Rows], Path]:
    """One object a line; `name` tells the compression."""
    return lambda folder, rows: put(folder / name, _lines(rows).removesuffix(b"\n") + end.encode())


def json_array(name: str = "pairs.json", **layout) -> Callable[[Path, Rows], Path]:
    return lambda folder, rows: put(folder / name, json.dumps(rows, **layout).encode())


def json_wrapped(key: str = "data", **beside) -> Callable[[Path, Rows], Path]:
    """An object that holds the array beside other things."""
    return lambda folder, rows: put(folder / "pairs.json", json.dumps({**beside, key: rows}).encode())


def json_columns(folder: Path, rows: Rows) -> Path:
    """What `pandas.DataFrame.to_json` writes by default: {column: {row: cell}}."""
    columns = {name: {str(i): row[name] for i, row in enumerate(rows)} for name in rows[0]}
    return put(folder / "pairs.json", json.dumps(columns).encode())


def json_by_number(folder: Path, rows: Rows) -> Path:
    """What `pandas.DataFrame.to_json(orient="index")` writes: {row: {column: cell}}."""
    return put(folder / "pairs.json", json.dumps({str(i): row for i, row in enumerate(rows)}).encode())


def json_by_name(folder: Path, rows: Rows) -> Path:
    """Rows under their ids, some of which have a remark more than others."""
    more = [row | ({"remark": "seen"} if i % 3 == 0 else {}) for i, row in enumerate(rows)]
    return put(folder / "pairs.json", json.dumps({f"item-{i}": row for i, row in enumerate(more)}).encode())


def json_within(*keys: str, make: Callable[[Rows], object]) -> Callable[[Path, Rows], Path]:
    """Objects around what `make` makes of the rows, each with its key of it."""

    def store(folder: Path, rows: Rows) -> Path:
        whole = make(rows)
        for key in reversed(keys):
            whole = {"status": "ok", key: whole}
        return put(folder / "pairs.json", json.dumps(whole).encode())

    return store


def lists(rows: Rows) -> dict:
    """{column: [cell, …]}"""
    return {name: [row[name] for row in rows] for name in rows[0]}


def split(rows: Rows) -> dict:
    """What `pandas.DataFrame.to_dict(orient="split")` gives."""
    return {"index": [*range(len(rows))], "columns": [*rows[0]], "data": [[*row.values()] for row in rows]}


def by_label(rows: Rows) -> dict:
    """What `pandas.DataFrame.to_json` writes of rows with names: {column: {name: cell}}."""
    return {name: {f"r{i}": cell for i, cell in enumerate(column)} for name, column in lists(rows).items()}


def rows_alone(rows: Rows) -> dict:
    """The data set viewer's rows without their numbers."""
    return {"rows": [{"row": row} for row in rows]}


def server_rows(folder: Path, rows: Rows) -> Path:
    """What the data set viewer's /rows gives: {"rows": [{"row_idx": 0, "row": {…}}]}."""
    wrapped = {
        "features": [{"feature_idx": i, "name": name} for i, name in enumerate(rows[0])],
        "rows": [{"row_idx": i, "row": row, "truncated_cells": []} for i, row in enumerate(rows)],
        "num_rows_total": len(rows),
        "partial": False,
    }
    return put(folder / "rows.json", json.dumps(wrapped).encode())


def truncated_jsonl(folder: Path, rows: Rows) -> Path:
    """The last line breaks off in the middle."""
    content = _lines(rows)
    return put(folder / "pairs.jsonl", content[: -len(_lines(rows[-1:])) // 2])


def truncated_table(folder: Path, rows: Rows) -> Path:
    """The last record has lost its last cell."""
    path = table()(folder, rows)
    return put(path, path.read_bytes().rpartition(b",")[0] + b"\n")


def truncated_gz(folder: Path, rows: Rows) -> Path:
    """The download broke off."""
    path = jsonl("pairs.jsonl.gz")(folder, rows)
    path.write_bytes(path.read_bytes()[:-40])
    return path


def table(
    name: str = "pairs.csv", sep: str = ",", encoding: str = "utf-8", index: bool = False, end: str = "\n"
) -> Callable[[Path, Rows], Path]:
    """A table of texts; `index`: a first column without a name, as pandas writes it."""

    def write(folder: Path, rows: Rows) -> Path:
        import io

        file = io.StringIO()
        writer = csv.writer(file, delimiter=sep, lineterminator=end)
        writer.writerow([*([""] if index else []), *rows[0]])
        for i, row in enumerate(rows):
            writer.writerow(
                [*([i] if index else []), *("" if cell is None else cell for cell in row.values())]
            )
        return put(folder / name, file.getvalue().encode(encoding))

    return write


def parquet(
    name: str = "pairs.parquet",
    types: dict[str, pa.DataType] | None = None,
    metadata: dict[str, str] | None = None,
    **options,
) -> Callable[[Path, Rows], Path]:
    """One Parquet file; `types` of columns that differ from what pyarrow infers."""

    def write(folder: Path, rows: Rows) -> Path:
        pq.write_table(arrow_table(rows, types, metadata), folder / name, **options)
        return folder / name

    return write


def arrow_table(rows: Rows, types=None, metadata=None) -> pa.Table:
    columns = {}
    for name in rows[0]:
        cells, kind = [row[name] for row in rows], (types or {}).get(name)
        columns[name] = (
            pa.array(cells).cast(kind) if kind is not None and _castable(kind) else pa.array(cells, kind)
        )
    return pa.table(columns).replace_schema_metadata(metadata)


def _castable(kind: pa.DataType) -> bool:
    return pa.types.is_dictionary(kind)


def feather(folder: Path, rows: Rows) -> Path:
    pyarrow.feather.write_feather(arrow_table(rows), str(folder / "pairs.feather"))
    return folder / "pairs.feather"


def arrow_stream(folder: Path, rows: Rows) -> Path:
    made = arrow_table(rows)
    with pa.OSFile(str(folder / "pairs.arrow"), "wb") as file, pa.ipc.new_stream(file, made.schema) as writer:
        writer.write_table(made)
    return folder / "pairs.arrow"


def shards(read: str = "") -> Callable[[Path, Rows], Path]:
    """A folder of Parquet files as the hub has them; `read`: what to give below it, such as a glob."""

    def write(folder: Path, rows: Rows) -> Path:
        (folder / "data").mkdir()
        half = len(rows) // 2
        for i, part in enumerate((rows[:half], rows[half:])):
            pq.write_table(arrow_table(part), folder / "data" / f"train-{i:05}-of-00002.parquet")
        return folder / "data" / read if read else folder / "data"

    return write


def saved(*splits: str) -> Callable[[Path, Rows], Path]:
    """`datasets.Dataset.save_to_disk`, or a DatasetDict whose first split has the rows and whose others have two."""

    def write(folder: Path, rows: Rows) -> Path:
        import datasets

        datasets.disable_progress_bars()
        whole = datasets.Dataset(arrow_table(rows))
        if splits:
            whole = datasets.DatasetDict(
                {n: whole if n == splits[0] else whole.select(range(2)) for n in splits}
            )
        whole.save_to_disk(str(folder / "saved"))
        return folder / "saved"

    return write


def arrays(form: str) -> Callable[[Path, Rows], Path]:
    """Rows of {"chosen", "rejected"} of numbers as two arrays: "npy" (two files), "folder", "npz" or "safetensors"."""

    def write(folder: Path, rows: Rows) -> Path:
        sides = {name: np.array([row[name] for row in rows], np.float32) for name in ("chosen", "rejected")}
        if form in ("npy", "folder"):
            for name, side in sides.items():
                np.save(folder / f"{name}.npy", side)
            return folder if form == "folder" else folder / "chosen.npy"
        path = folder / f"embeddings.{form}"
        if form == "npz":
            np.savez(path, **sides)
        else:
            from safetensors.numpy import save_file

            save_file(sides, path)
        return path

    return write
