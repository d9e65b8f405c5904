"""What stands in a file, read by the libraries themselves: every row, column, type and piece of metadata, in order."""

import bz2
import csv
import gzip
import io
import json
import lzma
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

OPENERS = {".gz": gzip.decompress, ".bz2": bz2.decompress, ".xz": lzma.decompress}
MARKS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


def content(path: Path) -> object:
    """Comparable by `same`."""
    if "*" in path.name:
        return _joined(sorted(path.parent.glob(path.name)))
    if path.is_dir():
        return _folder(path)
    inner = path.name.removesuffix(path.suffix) if path.suffix in (*OPENERS, ".zst") else path.name
    kind = Path(inner).suffix
    if kind == ".parquet":
        return pq.read_table(path)
    if kind in (".feather", ".arrow"):
        return _arrow(path)
    if kind in (".npy", ".npz", ".safetensors"):
        return _arrays(path, kind)
    data = _bytes(path)
    return _records(data) if kind in (".csv", ".tsv") else _json(data)


def same(one: object, other: object) -> bool:
    """Equal with types, the order of columns and keys, and the metadata of schemas."""
    if isinstance(one, pa.Table) and isinstance(other, pa.Table):
        return one.schema.equals(other.schema, check_metadata=True) and one.equals(other)
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and bool(np.all(one == other))
    return type(one) is type(other) and one == other


def rows_of(found: object, count: int) -> object:
    """The first `count` rows."""
    return found.slice(0, count) if isinstance(found, pa.Table) else found[:count]


def _bytes(path: Path) -> bytes:
    if path.suffix == ".zst":
        with pa.CompressedInputStream(str(path), "zstd") as file:
            return file.read()
    return OPENERS.get(path.suffix, bytes)(path.read_bytes())


def _json(data: bytes) -> object:
    """One value, or a list of a value a line."""
    text = data.decode("utf-8-sig")
    try:
        return json.loads(text)
    except ValueError:
        return [_line(line) for line in text.split("\n") if line.strip()]


def _line(line: str) -> object:
    try:
        return json.loads(line)
    except ValueError:
        return line


def _records(data: bytes) -> list[list[str]]:
    """The records, and before them the separator."""
    mark = next((name for start, name in MARKS.items() if data.startswith(start)), None)
    try:
        text = data.decode(mark or "utf-8")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    head = text.split("\n")[0]
    separator = max(",;\t", key=head.count)
    lines = [line.split(separator) for line in text.split("\n")[:-1]]
    if separator == "\t" and len({len(line) for line in lines}) == 1:  # nothing is quoted, or need be
        return [[separator], *lines]
    return [[separator], *csv.reader(io.StringIO(text, newline=""), delimiter=separator)]


def _arrow(path: Path) -> pa.Table:
    with pa.OSFile(str(path), "rb") as file:
        try:
            return pa.ipc.open_file(file).read_all()
        except pa.ArrowInvalid:
            file.seek(0)
            return pa.ipc.open_stream(file).read_all()


def _arrays(path: Path, kind: str) -> dict:
    if kind == ".npy":
        return {side: np.load(path.with_name(f"{side}.npy")) for side in ("chosen", "rejected")}
    if kind == ".npz":
        with np.load(path) as arrays:
            return {name: arrays[name] for name in sorted(arrays)}
    from safetensors.numpy import load_file

    return dict(sorted(load_file(path).items()))


def _joined(files: list[Path]) -> object:
    """Shards, one after the other."""
    parts = [content(file) for file in files]
    return (
        pa.concat_tables(parts) if isinstance(parts[0], pa.Table) else [row for part in parts for row in part]
    )


def _folder(path: Path) -> object:
    """Of several splits, train alone."""
    if list(path.glob("*.npy")):
        return {side: np.load(path / f"{side}.npy") for side in ("chosen", "rejected")}
    if shards := sorted([*path.rglob("train-*.parquet"), *path.glob("part-*")]):
        return _joined(shards)
    if (path / "dataset_dict.json").exists():
        return _folder(path / "train")
    import datasets

    return datasets.load_from_disk(str(path)).data.table


def rows_as_dicts(found: object) -> list[dict]:
    """The rows of what `content` gave, by the names of the columns."""
    if isinstance(found, pa.Table):
        return found.to_pylist()
    if found and isinstance(found[0], list):  # the separator, the header and the records
        return [dict(zip(found[1], record, strict=True)) for record in found[2:]]
    return list(found)
