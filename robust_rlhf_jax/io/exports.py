"""Files written back in the container they came in, whole or not at all."""

import os
from collections import Counter
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np

from robust_rlhf_jax.unfinished import whole_path

from .containers import BY_SUFFIX, WRITERS, shards
from .containers.compression import SUFFIXES as COMPRESSED
from .pairs import Pairs

# What an audit adds to a file (`audit.Verdicts`).
AUDITED = ("suspicion", "keep", "suggested_label", "weight", "margin")


def check_export(pairs: Pairs, path: Path, option: str) -> None:
    """**Raises:** ValueError for a place to which this container cannot be written, said before any work."""
    source = pairs.source
    if pairs.format == "memory":
        raise ValueError(
            f"{option} {path}: {pairs.path} is in memory, so no file is written again: `Pairs.rows` says which of its "
            "rows each pair comes from."
        )
    if source is None:
        raise ValueError(
            f"{option} {path}: {pairs.path} has no columns to add to; --out writes suspects.csv."
        )
    if source.container not in WRITERS:
        raise ValueError(
            f"{option} {path}: {pairs.path} is {source.shown or source.container}, which is read and not written; "
            f"--out writes suspects.csv."
        )
    if not source.suffix and path.suffix.lower() in (*BY_SUFFIX, *COMPRESSED):
        raise ValueError(
            f"{option} {path}: {pairs.path} is several files, which are written as a folder, so give a "
            f"name without a suffix."
        )
    if source.suffix and not path.name.lower().endswith(source.suffix):
        raise ValueError(
            f"{option} {path}: {pairs.path} is a {source.suffix} file, so give a name that ends in {source.suffix}."
        )
    if path.resolve() == pairs.path.resolve() or path.resolve() in {file.resolve() for file in source.files}:
        raise ValueError(f"{option} {path} is the file itself: give another name.")
    if path.is_dir():
        raise ValueError(f"{option} {path} is a folder that exists: give another name.")
    if not source.suffix and path.exists():
        raise ValueError(
            f"{option} {path} is a file that exists, and a folder would be written: give another name."
        )
    if not path.absolute().parent.is_dir():
        raise ValueError(f"{option} {path}: the folder {path.parent} does not exist: make it first.")


def export(
    pairs: Pairs, path: str | os.PathLike, columns: dict[str, list], keep: Iterable[bool] | None = None
) -> Path:
    """Write the usable rows of `pairs` with further `columns`, one cell a pair; with `keep`, those rows alone.

    Cells, types, the order of columns, what the schema says of them, encoding and compression stay as they are. Two
    `.npy` files become a folder of `.npy` files, one for each side and each further column; a folder of files becomes
    one. A row that several pairs come from gets their vote (mean, majority), and where raters judged a pair several
    times the columns votes_first, votes_second and votes_tie say how often each side won. No column of the file is
    replaced (`own_names`).

    **Raises:** ValueError for another suffix, the file itself, or a folder that exists.

    **Example:**

    >>> import pathlib, tempfile
    >>> from robust_rlhf_jax.io import export, load_pairs
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "pairs.csv").write_text("chosen_price,rejected_price\\n2400,4000\\n9000,3000\\n")
    >>> pairs = load_pairs(folder / "pairs.csv")
    >>> copy = export(pairs, folder / "clean.csv", {"suspicion": [0.1, 0.9]}, keep=[True, False])
    >>> print(copy.read_text(), end="")
    chosen_price,rejected_price,suspicion
    2400,4000,0.1
    """
    path = Path(path)
    check_export(pairs, path, "export")
    with whole_export(pairs, path) as scratch:
        write_rows(pairs, scratch, columns, keep)
    return path


def whole_export(pairs: Pairs, path: Path) -> AbstractContextManager[Path]:
    """`whole_path` of a file, or of a folder where the container is one."""
    assert pairs.source is not None
    return whole_path(path, folder=not pairs.source.suffix)


def write_rows(
    pairs: Pairs, path: Path, columns: dict[str, list], keep: Iterable[bool] | None = None
) -> None:
    """What `export` writes, at a `path` that `whole_export` gave."""
    source = pairs.source
    assert source is not None
    columns = dict(columns) | (votes_of(pairs) if columns else {})
    names = own_names(pairs, columns)
    columns = {names[name]: column for name, column in columns.items()}
    members = pairs_by_row(pairs)
    rows = list(members) if keep is None else _kept_rows(members, keep)
    cells = {
        name: [_vote([column[i] for i in members[row]]) for row in rows] for name, column in columns.items()
    }
    (shards if "parts" in source.how else WRITERS[source.container]).write(source, path, rows, cells)


def own_names(pairs: Pairs, columns: Iterable[str]) -> dict[str, str]:
    """{name of a further column: what it is called in an export}: `audit_<name>` where the file has a column of that
    name. Columns of an earlier audit, of which the file has all, are replaced.
    """
    # Another audit's columns give way to ours; beside its audit_<name>, <name> is the file's.
    again = {*AUDITED} <= {*pairs.columns}
    names = {}
    for name in columns:
        own = name
        while (f"audit_{own}" if again else own) in pairs.columns:
            own = f"audit_{own}"
        names[name] = own
    return names


def six_digits(value: float) -> float:
    """Six significant digits, so that a small weight does not become 0."""
    return float(f"{float(value):.6g}")


def _kept_rows(members: dict[int, list[int]], keep: Iterable[bool]) -> list[int]:
    """The rows of which at least half of the pairs are kept."""
    kept = [bool(k) for k in keep]
    return [row for row, mine in members.items() if 2 * sum(kept[i] for i in mine) >= len(mine)]


def of_whole_rows(pairs: Pairs, keep: Iterable[bool]) -> str:
    """What is said of pairs that `write_rows` cannot treat as `keep` says, for a row is written whole or not at all; ""
    where there are none.
    """
    if pairs.second_rows is None and len(np.unique(pairs.rows)) == pairs.n_pairs:
        return ""
    keep = np.asarray(list(keep), bool)
    whole = _kept_rows(pairs_by_row(pairs), keep)
    rows = np.isin(pairs.rows, whole)
    if pairs.second_rows is not None:
        rows &= np.isin(pairs.second_rows, whole)
    stay, go = int(np.sum(rows & ~keep)), int(np.sum(~rows & keep))
    said = [
        f"{count:,} {which} {'pair' if count == 1 else 'pairs'} {what}"
        for count, which, what in (
            (stay, "dropped", "left in, because other pairs of the row are kept"),
            (go, "kept", "left out, because other pairs of the row are dropped"),
        )
        if count
    ]
    return f"A row is written whole or not at all: {'; '.join(said)}." if said else ""


def pairs_by_row(pairs: Pairs) -> dict[int, list[int]]:
    """{row of the file: its pairs} in the file's order; rows that no pair came from, such as answers without a rival,
    have none, and unusable rows are left out.
    """
    bad = {cell.row for cell in pairs.bad} - set(pairs.rows.tolist())
    members: dict[int, list[int]] = {row: [] for row in range(pairs.n_rows) if row not in bad}
    for pair, row in enumerate(pairs.rows.tolist()):
        members[row].append(pair)
    for pair, row in enumerate([] if pairs.second_rows is None else pairs.second_rows.tolist()):
        if row != pairs.rows[pair]:
            members.setdefault(row, []).append(pair)
    return dict(sorted(members.items()))


def _vote(cells: list):
    """One cell for several pairs: their mean, the more frequent word, or the majority; None for no pair."""
    if len(cells) < 2:
        return cells[0] if cells else None
    if all(isinstance(cell, bool | np.bool_) for cell in cells):
        return 2 * sum(map(bool, cells)) >= len(cells)
    if all(isinstance(cell, int | np.integer) for cell in cells) and len(set(cells)) == 1:
        return cells[0]
    if all(isinstance(cell, int | float | np.number) for cell in cells):
        return six_digits(float(np.mean(cells)))
    return Counter(cells).most_common(1)[0][0]


def votes_of(pairs: Pairs) -> dict[str, list]:
    """How often each of a pair's sides won by the word of all its raters, pair by pair; {} where nobody judged twice.

    First and second are the sides as the file has them in that pair's row.
    """
    if pairs.raters is None or pairs.groups is None:
        return {}
    tally: dict[tuple, Counter] = {}
    keys, ways = [], []
    for i, (group, label) in enumerate(zip(pairs.groups.tolist(), pairs.labels.tolist(), strict=True)):
        sides = _sides(pairs, i)
        turned = sides[0] > sides[1]
        key = (group, frozenset(sides))
        keys.append(key)
        ways.append(turned)
        tally.setdefault(key, Counter())[-label if turned else label] += 1
    if all(sum(counts.values()) == 1 for counts in tally.values()):
        return {}
    names = {"votes_first": 1, "votes_second": -1, "votes_tie": 0}
    return {
        name: [tally[key][-way if turned else way] for key, turned in zip(keys, ways, strict=True)]
        for name, way in names.items()
    }


def _sides(pairs: Pairs, i: int) -> tuple:
    """What tells a pair's first and second side from others: their texts, or else their features."""
    if pairs.texts is not None:
        sides = pairs.texts.chosen[i], pairs.texts.rejected[i]
    else:
        sides = tuple(np.asarray(side[i]).tobytes() for side in (pairs.chosen, pairs.rejected))
    return sides[::-1] if pairs.swapped[i] else sides
