"""Sources written back in the form in which they came, with further columns and without the pairs that are left out."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Shaped

from robust_rlhf_jax.unfinished import whole_path

from .parquet import ParquetSource
from .parquet_copies import copy_parquet
from .protocol import PairSource
from .shard_copies import copy_shards, provenance
from .shards import BESIDE, ShardSource

# Files beside shards that are not the source's own.
FREE = ("ids", "weights", "suspicion")
# Reports (pairs written or passed over, pairs in all).
Told = Callable[[int, int], None]


def write_copy(
    source: PairSource,
    path: str | Path,
    columns: dict[str, Shaped[np.ndarray, " N"]] | None = None,
    *,
    keep: Bool[np.ndarray, " N"] | None = None,
    told: Told | None = None,
) -> Path:
    """Write the pairs of Parquet files or shards back, with further `columns` and, with `keep`, those pairs alone.

    Of a Parquet file it is a file, of several a folder of files with the same names: types, metadata and compression
    stay, and columns of the same names give way. Of shards it is a folder of shards with the same names, or numbered
    ones where a folder of those would not open as the same pairs. Beside them are labels, groups, raters and each
    column, and `rows.npy`, which pairs of the source they are; of a folder that has a `rows.npy` of its own, the rows
    of the original file. Its `ids.npy` and `featuriser.safetensors`, as `embedded` writes them, are copied, too. A copy
    is there whole or not at all; one row group, or some thousand rows of a shard, are in memory at a time.

    **Arguments:** `columns`: by name, a value for each pair of the source; `told(done, total)` is called as it goes on.

    **Raises:** ValueError for another source, a place where it cannot be written, `keep` of another length or of no
    pair, a column of another length or, beside shards, of the name of what the source itself has there, and files that
    have changed.

    **Example:**

    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from robust_rlhf_jax.sources import open_pairs, write_copy
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> (folder / "all").mkdir()
    >>> np.save(folder / "all" / "chosen.npy", np.eye(3, dtype=np.float32))
    >>> np.save(folder / "all" / "rejected.npy", np.zeros((3, 3), np.float32))
    >>> source = open_pairs(folder / "all")
    >>> copy = write_copy(source, folder / "some", {"weights": np.ones(3)}, keep=np.array([True, False, True]))
    >>> sorted(file.name for file in copy.iterdir()), open_pairs(copy).n_pairs
    (['chosen.npy', 'rejected.npy', 'rows.npy', 'weights.npy'], 2)
    """
    path = Path(path)
    check_copy(source, path, "write_copy")
    keep = np.ones(source.n_pairs, bool) if keep is None else np.asarray(keep)
    _check_keep(keep, source.n_pairs)
    with whole_path(path, folder=is_folder(source)) as place:
        copy_to(source, place, columns or {}, keep, told or (lambda done, total: None))
    return path


def copy_to(
    source: PairSource,
    place: Path,
    columns: dict[str, Shaped[np.ndarray, " N"]],
    keep: Bool[np.ndarray, " N"],
    told: Told,
) -> None:
    """What `write_copy` writes, at a `place` that `whole_copy` gave.

    **Raises:** as `write_copy`.
    """
    columns = {name: np.asarray(values) for name, values in columns.items()}
    _check_columns(source, columns)
    if isinstance(source, ParquetSource):
        copy_parquet(source, place, columns, keep, told)
    elif isinstance(source, ShardSource):
        copy_shards(source, place, columns, keep, told)


def whole_copy(source: PairSource, path: Path):
    """`whole_path` of a file, or of a folder where the copy is one."""
    return whole_path(path, folder=is_folder(source))


def check_copy(source: PairSource, path: Path, option: str) -> None:
    """**Raises:** ValueError for a place to which no copy of this source can be written, said before any work."""
    if not isinstance(source, ParquetSource | ShardSource):
        raise ValueError(
            f"{option} {path}: the pairs come from no files: give write_shards what the source makes."
        )
    if not is_folder(source) and path.suffix.lower() not in (".parquet", ".pq"):
        raise ValueError(
            f"{option} {path}: the pairs are a Parquet file, so give a name that ends in .parquet."
        )
    if is_folder(source) and path.suffix:
        raise ValueError(
            f"{option} {path}: the pairs are written as a folder, so give a name without a suffix."
        )
    if path.resolve() in {place.resolve() for file in _files(source) for place in (file, file.parent)}:
        raise ValueError(f"{option} {path} is where the pairs come from: give another name.")
    if path.is_dir() or (is_folder(source) and path.exists()):
        raise ValueError(f"{option} {path} exists: give another name.")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"{option} {path}: the folder {path.parent} does not exist: make it first.")
    if isinstance(source, ShardSource):
        provenance(source)


def _files(source: PairSource) -> list[Path]:
    if isinstance(source, ShardSource):
        return [shard.path for side in source.sides for shard in side]
    return list(source.files) if isinstance(source, ParquetSource) else []


def is_folder(source: PairSource) -> bool:
    """Whether a copy of the source is a folder, else a Parquet file."""
    return isinstance(source, ShardSource) or len(_files(source)) > 1


def _check_columns(source: PairSource, columns: dict[str, np.ndarray]) -> None:
    for name, values in columns.items():
        if values.shape != (source.n_pairs,):
            raise ValueError(
                f"The column {name} has shape {values.shape}: give a value for each of the {source.n_pairs} pairs."
            )
        if not isinstance(source, ShardSource):
            continue
        if name not in BESIDE:
            raise ValueError(f"{name}.npy has no place beside shards: name it one of {', '.join(FREE)}.")
        if name not in FREE:
            raise ValueError(
                f"{name}.npy of a copy is that of the source: leave the column out, or name it one of "
                f"{', '.join(FREE)}."
            )


def _check_keep(keep: np.ndarray, n_pairs: int) -> None:
    if keep.shape != (n_pairs,) or keep.dtype != bool:
        raise ValueError(
            f"keep holds {keep.dtype} of shape {keep.shape}: give a truth value for each of the {n_pairs} pairs."
        )
    if not keep.any():
        raise ValueError("keep leaves no pair: keep at least one.")
