"""What a results folder holds, checked."""

import contextlib
import itertools
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from robust_rlhf_jax.lab.sweeps.programs import REFERENCE
from robust_rlhf_jax.lab.sweeps.sealed import CELLS, Part, check_seal, read_part
from robust_rlhf_jax.lab.sweeps.store import REPRODUCES, settings_in
from robust_rlhf_jax.unfinished import remove_leftovers

from .numbers import NO_ATTACK

# What the commands leave: NAME.parquet with the cells, and the file with settings and versions.
FACTS = {"results": "summary.json", "robustness": "robustness.json", "table1": "table1.json"}
TITLES = {"results": "Sweep", "robustness": "Robustness", "table1": "Table 1"}
# The deepest nesting of settings that a file may have; ours are shallower.
DEEPEST = 20
KEY = ("family", "attack", "epsilon", "seed", "algorithm")
OUTCOMES = ("normalised_gap", "suboptimality")


class Result(NamedTuple):
    """`rows`: one dict per cell that has a normalised gap; `unscaled`: those that have a suboptimality alone;
    `facts`: settings and versions, empty if unknown; `parts`: files read of an unfinished sweep, None if finished.

    **Example:**

    >>> from robust_rlhf_jax.lab.report import Result
    >>> cell = {"family": "chain", "attack": "flip_random", "epsilon": 0.1, "seed": 0, "algorithm": "standard"}
    >>> rows = [{**cell, "normalised_gap": 0.03, "status": "converged", "oracle_calls": 1}]
    >>> Result("Sweep", rows, unscaled=[], facts={}, parts=None).rows[0]["normalised_gap"]
    0.03
    """

    title: str
    rows: list[dict[str, Any]]
    unscaled: list[dict[str, Any]]
    facts: dict[str, Any]
    parts: int | None


def load_results(folder: Path) -> list[Result]:
    """Every finished result in `folder`, or, where there is none, what its `parts` hold of an unfinished sweep.

    **Raises:** ValueError in one sentence for a folder without results, a file that is no parquet, lacks a column
    or holds no cells, and parts that are damaged or contradict each other.

    **Example:**

    >>> import pathlib, tempfile
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> from robust_rlhf_jax.lab.report import load_results
    >>> cell = {"family": "chain", "attack": "flip_random", "epsilon": 0.1, "seed": 0, "algorithm": "standard"}
    >>> table = pa.Table.from_pylist([{**cell, "normalised_gap": 0.03, "status": "converged", "oracle_calls": 1}])
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> pq.write_table(table, folder / "results.parquet")
    >>> [(result.title, len(result.rows)) for result in load_results(folder)]
    [('Sweep', 1)]
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder: give one that a sweep or a reproduction has written.")
    with contextlib.suppress(OSError):  # a folder that cannot be written
        remove_leftovers(folder)
    names = [name for name in FACTS if (folder / f"{name}.parquet").is_file()]
    if names:
        return [_finished(folder, name) for name in names]
    parts = sorted(folder.glob("parts/*.parquet"))
    if parts:
        return [_unfinished(folder / "parts", parts)]
    files = ", ".join(f"{name}.parquet" for name in FACTS)
    raise ValueError(
        f"{folder} holds no results: none of {files} and no parts/*.parquet: give the folder of a sweep or a "
        "reproduction (an audit has written its own page, audit.html)."
    )


def _finished(folder: Path, name: str) -> Result:
    path = folder / f"{name}.parquet"
    rows = _distinct(path, read_cells(path))
    scaled, unscaled = _split(rows)
    if not scaled:
        raise ValueError(f"{path} holds no cells with a normalised gap: run the command that wrote it again.")
    return Result(TITLES[name], scaled, unscaled, _read_facts(folder / FACTS[name]), None)


def _unfinished(folder: Path, paths: list[Path]) -> Result:
    """The result of the finished parts; those of a reproduction's lower bound and of label entropies hold no cells.

    **Raises:** ValueError for parts of several sweeps or reproductions, whose cells cannot be told apart.
    """
    begun = settings_in(folder)
    if len(begun) > 1:
        listed = "; ".join(", ".join(f"{name} {value}" for name, value in one.items()) for one in begun)
        reproduced = any(REPRODUCES in one for one in begun)
        what = "sweeps and reproductions" if reproduced else "sweeps"
        raise ValueError(
            f"{folder} holds parts of {len(begun)} unfinished {what} ({listed}): finish one of them first."
        )
    reproduces = begun[0].get(REPRODUCES) if begun else None
    title = TITLES.get(str(reproduces), TITLES["results"])
    parts = {path: part for path in paths if (part := read_part(path)).kind == CELLS}
    rows = _distinct(
        folder, itertools.chain.from_iterable(_cells(path, part) for path, part in parts.items())
    )
    scaled, unscaled = _split(rows)
    if not scaled:
        raise ValueError(f"{folder} holds no cells with a normalised gap: let the sweep go on first.")
    return Result(title, spread_reference(scaled), unscaled, {}, len(parts))


def _cells(path: Path, part: Part) -> list[dict[str, Any]]:
    import pyarrow as pa

    return _checked(path, pa.Table.from_pylist(part.rows))


def read_cells(path: Path) -> list[dict[str, Any]]:
    """The cells of one parquet file: its needed columns, and `suboptimality` if there.

    A seal is looked at where there is one: tables of one's own have none.

    **Raises:** ValueError in one sentence.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    check_seal(path)
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            table = file.read()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if getattr(error, "errno", None):  # the system's error, not the file's
            raise
        raise ValueError(f"{path} is not a parquet file: write it again.") from None
    return _checked(path, table)


def _checked(path: Path, table: Any) -> list[dict[str, Any]]:
    """The columns that are needed, in their types."""
    import pyarrow as pa

    types = {
        "family": pa.string(), "attack": pa.string(), "epsilon": pa.float64(), "seed": pa.int64(),
        "algorithm": pa.string(), "normalised_gap": pa.float64(), "status": pa.string(),
        "oracle_calls": pa.int64(),
    }  # fmt: skip
    for name in types:
        if table.column_names.count(name) > 1:
            raise ValueError(f"{path} has the column {name} twice: drop one.")
        if name not in table.column_names:
            raise ValueError(f"{path} lacks the column {name}: it needs {', '.join(types)}.")
    if "suboptimality" in table.column_names:
        types["suboptimality"] = pa.float64()
    try:
        rows = table.select(list(types)).cast(pa.schema(list(types.items()))).to_pylist()
    except (pa.ArrowException, UnicodeDecodeError):
        wanted = ", ".join(f"{name} {kind}" for name, kind in types.items())
        raise ValueError(f"{path} has a column of another type: it needs {wanted}.") from None
    _check_keys(path, rows)
    return rows


def _check_keys(path: Path, rows: list[dict[str, Any]]) -> None:
    for i, row in enumerate(rows):
        for name in KEY:
            if row[name] is None or (name == "epsilon" and not math.isfinite(row[name])):
                raise ValueError(f"{path}: row {i + 1} has no {name}: every cell needs one.")
        if not 0 <= row["epsilon"] <= 1:
            raise ValueError(
                f"{path}: row {i + 1} has epsilon {row['epsilon']:g}: it is a fraction of the pairs."
            )
        if row["oracle_calls"] is not None and row["oracle_calls"] < 0:
            raise ValueError(f"{path}: row {i + 1} has {row['oracle_calls']} oracle calls: give 0 or more.")


def _split(rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(cells with a normalised gap, cells with a suboptimality alone); a NaN is a gap, a breakdown's."""
    scaled = [row for row in rows if row["normalised_gap"] is not None]
    unscaled = [row for row in rows if row["normalised_gap"] is None and row.get("suboptimality") is not None]
    return scaled, unscaled


def _distinct(folder: Path, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each cell once: of several sweeps in one folder, whose parts a hash names, or of tables put together."""
    found: dict[tuple, dict[str, Any]] = {}
    for row in rows:
        first = found.setdefault(tuple(row[name] for name in KEY), row)
        outcome = [
            [str(one.get(name)) for name in OUTCOMES] for one in (first, row)
        ]  # as text, where NaN is NaN
        if outcome[0] != outcome[1]:
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
        # A FIFO would be waited for.
        facts = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
    except (ValueError, RecursionError):  # JSONDecodeError, UnicodeDecodeError, and brackets without end
        facts = None
    if not isinstance(facts, dict):
        raise ValueError(f"{path} is not a JSON object: write it again, or remove it.")
    if _is_deeper(facts, DEEPEST):
        raise ValueError(f"{path} is nested more than {DEEPEST} deep: write it again, or remove it.")
    return facts


def _is_deeper(value: Any, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels == 0 or any(_is_deeper(x, levels - 1) for x in inner)
