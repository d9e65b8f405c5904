"""Arrow data sets in a folder, as `datasets.Dataset.save_to_disk` writes them, without `datasets`."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from .arrow_tables import columns_of, with_columns
from .table import Table

STATE, INFO, DATA = "state.json", "dataset_info.json", "data-00000-of-00001.arrow"


def read(path: Path) -> Table:
    """**Raises:** ValueError for a folder that holds no data set, or several splits; ImportError without pyarrow."""
    table = _read(path)
    columns = dict(zip(table.column_names, table.columns, strict=True))
    return Table(path, "arrow", columns_of(columns), table.num_rows)


def write(source: Path, path: Path, rows: Sequence[int], extra: dict[str, list]) -> None:
    """A folder that `datasets.load_from_disk` reads: the rows of `source` with further columns."""
    import pyarrow as pa

    table = with_columns(_read(source), rows, extra)
    path.mkdir()
    with pa.OSFile(str(path / DATA), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    fingerprint = hashlib.sha256((path / DATA).read_bytes()).hexdigest()[:16]
    state = {
        "_data_files": [{"filename": DATA}],
        "_fingerprint": fingerprint,
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": None,
    }
    for name, content in ((STATE, state), (INFO, {"citation": "", "description": ""})):
        (path / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _read(path: Path):
    import pyarrow as pa

    try:
        parts = [_part(pa, file) for file in _files(path)]
        table = pa.concat_tables(parts)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).split("\n")[0].rstrip(".")
        raise ValueError(f"{path} is not a readable Arrow data set ({reason}): save it again.") from None
    rows = _indices(pa, path)
    return table if rows is None else table.take(rows)


def _part(pa, file: Path):
    """`save_to_disk` writes streams; other writers write files."""
    with pa.memory_map(str(file)) as source:
        try:
            return pa.ipc.open_stream(source).read_all()
        except pa.ArrowInvalid:
            return pa.ipc.open_file(source).read_all()


def _files(path: Path) -> list[Path]:
    if (path / "dataset_dict.json").exists():
        splits = sorted(child.name for child in path.iterdir() if (child / STATE).exists())
        raise ValueError(f"{path} holds the splits {', '.join(splits)}: give one of them, such as {path / splits[0]}."
                         if splits else f"{path} holds no split: save the data set again.")  # fmt: skip
    if (path / STATE).exists():
        names = [part["filename"] for part in _state(path).get("_data_files", [])]
        files = [path / Path(name).name for name in names]
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
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path / STATE} is no description of a data set ({error}): save it again."
        ) from None


def _indices(pa, path: Path):
    """The order of rows that older versions of `datasets` save beside the data."""
    if not (path / STATE).exists():
        return None
    files = _state(path).get("_indices_data_files")
    if not files:
        return None
    parts = [_part(pa, path / Path(part["filename"]).name) for part in files]
    return pa.concat_tables(parts).column(0)
