"""What a results folder holds, checked."""

import itertools
import json
import math
from pathlib import Path
from typing import Any, NamedTuple

from robust_rlhf_jax.sweeps.programs import REFERENCE

from .numbers import NO_ATTACK

# What the commands leave: NAME.parquet with the cells, and the file with settings and versions.
FACTS = {"results": "summary.json", "robustness": "robustness.json", "table1": "table1.json"}
TITLES = {"results": "Sweep", "robustness": "Robustness", "table1": "Table 1"}
# Parts of Table 1's lower bound hold no cells of a sweep.
NO_CELLS = "lower_bound-"
KEY = ("family", "attack", "epsilon", "seed", "algorithm")


class Result(NamedTuple):
    """`rows`: one dict per cell that has a normalised gap; `unscaled`: those that have a suboptimality alone;
    `facts`: settings and versions, empty if unknown; `parts`: files read of an unfinished sweep, None if finished.
    """

    title: str
    rows: list[dict[str, Any]]
    unscaled: list[dict[str, Any]]
    facts: dict[str, Any]
    parts: int | None


def load_results(folder: Path) -> list[Result]:
    """Every finished result in `folder`, or, where there is none, what its `parts` hold of an unfinished sweep.

    **Raises:** ValueError in one sentence for a folder without results, a file that is no parquet, lacks a column
    or holds no cells, and parts that contradict each other.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder: give one that a sweep or a reproduction has written.")
    names = [name for name in FACTS if (folder / f"{name}.parquet").is_file()]
    if names:
        return [_finished(folder, name) for name in names]
    parts = sorted(p for p in folder.glob("parts/*.parquet") if not p.name.startswith(NO_CELLS))
    if parts:
        return [_unfinished(folder / "parts", parts)]
    files = ", ".join(f"{name}.parquet" for name in FACTS)
    raise ValueError(f"{folder} holds no results: none of {files} and no parts/*.parquet.")


def _finished(folder: Path, name: str) -> Result:
    path = folder / f"{name}.parquet"
    rows = read_cells(path)
    scaled, unscaled = _split(rows)
    if not scaled:
        raise ValueError(f"{path} holds no cells with a normalised gap: run the command that wrote it again.")
    return Result(TITLES[name], scaled, unscaled, _read_facts(folder / FACTS[name]), None)


def _unfinished(folder: Path, parts: list[Path]) -> Result:
    rows = _distinct(folder, itertools.chain.from_iterable(map(read_cells, parts)))
    scaled, unscaled = _split(rows)
    if not scaled:
        raise ValueError(f"{folder} holds no cells with a normalised gap: let the sweep go on first.")
    return Result(TITLES["results"], spread_reference(scaled), unscaled, {}, len(parts))


def read_cells(path: Path) -> list[dict[str, Any]]:
    """The cells of one parquet file: its needed columns, and `suboptimality` if there.

    **Raises:** ValueError in one sentence.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {
        "family": pa.string(), "attack": pa.string(), "epsilon": pa.float64(), "seed": pa.int64(),
        "algorithm": pa.string(), "normalised_gap": pa.float64(), "status": pa.string(),
        "oracle_calls": pa.int64(),
    }  # fmt: skip
    try:
        table = pq.ParquetFile(path).read()
    except (pa.ArrowInvalid, OSError) as error:
        if getattr(error, "errno", None):  # the system's error, not the file's
            raise
        raise ValueError(f"{path} is not a parquet file: write it again.") from None
    for name in types:
        if name not in table.column_names:
            raise ValueError(f"{path} lacks the column {name}: it needs {', '.join(types)}.")
    if "suboptimality" in table.column_names:
        types["suboptimality"] = pa.float64()
    try:
        rows = table.select(list(types)).cast(pa.schema(list(types.items()))).to_pylist()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        wanted = ", ".join(f"{name} {kind}" for name, kind in types.items())
        raise ValueError(f"{path} has a column of another type: it needs {wanted}.") from None
    _check_keys(path, rows)
    return rows


def _check_keys(path: Path, rows) -> None:
    for i, row in enumerate(rows):
        for name in KEY:
            if row[name] is None or (name == "epsilon" and not math.isfinite(row[name])):
                raise ValueError(f"{path}: row {i + 1} has no {name}: every cell needs one.")


def _split(rows) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(cells with a normalised gap, cells with a suboptimality alone); a NaN is a gap, a breakdown's."""
    scaled = [row for row in rows if row["normalised_gap"] is not None]
    unscaled = [row for row in rows if row["normalised_gap"] is None and row.get("suboptimality") is not None]
    return scaled, unscaled


def _distinct(folder: Path, rows) -> list[dict[str, Any]]:
    """Each cell once. Parts are named by a hash of their settings, so two sweeps can lie in one folder unseen."""
    found: dict[tuple, dict[str, Any]] = {}
    for row in rows:
        first = found.setdefault(tuple(row[name] for name in KEY), row)
        same = str(first["normalised_gap"]) == str(row["normalised_gap"])  # as text, where NaN is NaN
        if not same:
            cell = ", ".join(str(row[name]) for name in KEY)
            raise ValueError(
                f"{folder} holds two outcomes of one cell ({cell}): give each sweep its own folder."
            )
    return list(found.values())


def spread_reference(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The reference, which knows no attack, at every attack and ε that others have: so a finished sweep holds it."""
    alone = lambda row: row["algorithm"] == REFERENCE and row["attack"] == NO_ATTACK  # noqa: E731
    reference, others = [row for row in rows if alone(row)], [row for row in rows if not alone(row)]
    if not others:
        return rows
    cells = dict.fromkeys((row["attack"], row["epsilon"]) for row in others)
    return others + [
        {**row, "attack": attack, "epsilon": epsilon} for attack, epsilon in cells for row in reference
    ]


def _read_facts(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:  # JSONDecodeError and UnicodeDecodeError
        facts = None
    if not isinstance(facts, dict):
        raise ValueError(f"{path} is not a JSON object: write it again, or remove it.")
    return facts
