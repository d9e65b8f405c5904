"""What Parquet files and Arrow data sets share: pyarrow tables, and what `datasets` says of their columns."""

import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int

FEATURES = b"huggingface"


@contextlib.contextmanager
def refusing_damage(path: str | Path, kind: str) -> Iterator[None]:
    """Make one ValueError of all that pyarrow, and readers of what it gives, raise on damaged bytes."""
    import pyarrow as pa

    damage = (pa.ArrowException, OSError, UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError)
    try:
        yield
    except (*damage, MemoryError, RecursionError) as error:
        reason = str(error).split("\n")[0].rstrip(".")
        raise ValueError(f"{path} is not a readable {kind} ({reason}): write it again.") from None


def columns_of(table: Any, words: dict[str, list[str]] | None = None) -> dict[str, Any]:
    """Columns by name, with plain types: of a dictionary or a view the texts, of a `ClassLabel` the names, `words` or
    those of the metadata.

    **Raises:** ValueError for a name that is there twice.
    """
    names = table.column_names
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the column {twice!r} is there twice: rename one")
    words = class_names(table.schema.metadata) if words is None else words
    return {name: _plain(table.column(i), words.get(name)) for i, name in enumerate(names)}


def _plain(column: Any, words: list[str] | None):
    import pyarrow as pa

    kind = column.type
    if words is not None and pa.types.is_integer(kind):
        cells = column.to_pylist()
        return [words[i] if i is not None and 0 <= i < len(words) else None for i in cells]
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_string_view(kind):
        column = column.cast(pa.large_string())
    return column


def class_names(metadata: dict[bytes, bytes] | None) -> dict[str, list[str]]:
    """The names that the numbers of a column stand for (`datasets.ClassLabel`)."""
    found = _features(metadata)
    return {
        name: [str(word) for word in feature["names"]]
        for name, feature in found.items()
        if isinstance(feature, dict)
        and feature.get("_type") == "ClassLabel"
        and isinstance(feature.get("names"), list)
    }


def _features(metadata: dict[bytes, bytes] | None) -> dict:
    try:
        found = json.loads((metadata or {}).get(FEATURES, b"{}"))["info"]["features"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def with_columns(table: Any, rows: Sequence[int] | Int[np.ndarray, " n"], extra: dict[str, Any]):
    """The `rows` of a pyarrow table; `extra` columns take the place of those of their name, or come last.

    Types and the metadata of the schema and of its fields stay; what `datasets` says of the columns grows with them.
    """
    import pyarrow as pa

    metadata = table.schema.metadata
    table = taken(table, rows)
    for name, cells in extra.items():
        if name in table.column_names:
            table = table.drop_columns([name])
        table = table.append_column(name, pa.array(cells))
    return table.replace_schema_metadata(_grown(metadata, table, extra))


def taken(table: Any, rows: Sequence[int] | Int[np.ndarray, " n"]):
    """Rows in ascending order, as they are; by slices where pyarrow cannot take from a type."""
    import pyarrow as pa

    if len(rows) == table.num_rows:
        return table
    try:
        return table.take(pa.array(rows, pa.int64()))
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        runs: list[list[int]] = []
        for row in rows:
            if runs and row == runs[-1][1]:
                runs[-1][1] += 1
            else:
                runs.append([row, row + 1])
        return pa.concat_tables([table.slice(a, b - a) for a, b in runs] or [table.slice(0, 0)])


def _grown(metadata: Any, table: Any, extra: dict[str, Any]):
    """The schema's metadata with the new columns among the features."""
    features = _features(metadata)
    if not features:
        return metadata
    features = {n: feature for n, feature in features.items() if n not in extra} | features_of(table, extra)
    whole = json.loads(metadata[FEATURES])
    whole["info"]["features"] = features
    return metadata | {FEATURES: json.dumps(whole).encode()}


def features_of(table: Any, names: Iterable[str]) -> dict:
    """What `datasets` calls plain columns."""
    words = {"double": "float64", "float": "float32"}
    return {
        n: {
            "dtype": words.get(str(table.schema.field(n).type), str(table.schema.field(n).type)),
            "_type": "Value",
        }
        for n in names
    }
