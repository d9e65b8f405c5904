"""Arrow data sets in a folder, as `datasets.Dataset.save_to_disk` writes them, without `datasets`."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..table import Source, Table
from .arrow_files import KIND, read_part
from .arrow_tables import features_of, refusing_damage, taken, with_columns
from .named_splits import one_split
from .parquet_files import table_of

ORDER, NAME, SUFFIXES = 80, "arrow folder", ()
STATE, INFO, DATA = "state.json", "dataset_info.json", "data-00000-of-00001.arrow"


def holds(path: Path) -> bool:
    return any((path / name).exists() for name in (STATE, "dataset_dict.json")) or any(path.glob("*.arrow"))


def read(path: Path, how: dict[str, Any]) -> Table:
    """**Raises:** ValueError for a folder that holds no data set, or several splits; ImportError without pyarrow."""
    folder, notes = path, ()
    if (path / "dataset_dict.json").exists():
        splits = {child.name: child for child in sorted(path.iterdir()) if (child / STATE).exists()}
        if not splits:
            raise ValueError(f"{path} holds no split: save the data set again.")
        name = one_split(path, list(splits), how.get("split"))
        folder, notes = splits[name], (f"The split {name} is read.",)
    table = table_of(Source(path, (folder,), NAME, shown="an Arrow data set"), _read(folder))
    return Table(table.source, table.columns, table.n_rows, notes=notes)


def write(source: Source, path: Path, rows: Sequence[int], extra: dict[str, list]) -> None:
    """A folder that `datasets.load_from_disk` reads: the rows of `source` with further columns."""
    import pyarrow as pa

    table = with_columns(_read(source.file), rows, extra)
    path.mkdir(exist_ok=True)
    with pa.OSFile(str(path / DATA), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    state = {
        "_data_files": [{"filename": DATA}],
        "_fingerprint": hashlib.sha256((path / DATA).read_bytes()).hexdigest()[:16],
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": None,
    }
    for name, content in ((STATE, state), (INFO, _info(source.file, table, extra))):
        (path / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _info(folder: Path, table: Any, extra: dict[str, list]) -> dict:
    """What the source says of itself (description, licence, features), with the further columns."""
    try:
        info = json.loads((folder / INFO).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        info = None
    if not isinstance(info, dict):
        return {"citation": "", "description": ""}
    if isinstance(info.get("features"), dict):
        kept = {n: feature for n, feature in info["features"].items() if n not in extra}
        info["features"] = kept | features_of(table, extra)
    return info


def _read(path: Path):
    import pyarrow as pa

    with refusing_damage(path, KIND):
        table = pa.concat_tables([read_part(file) for file in _files(path)])
        order = _indices(pa, path)
    if order is None:
        return table
    ascending = order.to_pylist()
    with refusing_damage(path, KIND):
        return taken(table, ascending) if ascending == sorted(set(ascending)) else table.take(order)


def _files(path: Path) -> list[Path]:
    if (path / STATE).exists():
        files = [path / Path(part["filename"]).name for part in _state(path).get("_data_files", [])]
    else:
        files = sorted(path.glob("*.arrow"))
    if not files:
        raise ValueError(f"{path} is a folder without an Arrow data set: give one that save_to_disk wrote.")
    return files


def _state(path: Path) -> dict:
    try:
        state = json.loads((path / STATE).read_text(encoding="utf-8"))
        return {"_data_files": [{"filename": str(part["filename"])} for part in state["_data_files"]], **(
            {"_indices_data_files": state["_indices_data_files"]} if state.get("_indices_data_files") else {}
        )}  # fmt: skip
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"{path / STATE} is no description of a data set ({error}): save it again."
        ) from None


def _indices(pa: Any, path: Path):
    """The order of rows that older versions of `datasets` save beside the data."""
    if not (path / STATE).exists():
        return None
    files = _state(path).get("_indices_data_files")
    if not files:
        return None
    parts = [read_part(path / Path(part["filename"]).name) for part in files]
    return pa.concat_tables(parts).column(0)
