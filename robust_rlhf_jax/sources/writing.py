"""Any source as a folder of `.npy` shards."""

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Shaped

from robust_rlhf_jax.unfinished import whole_path

from ._recut import check_rows
from .floats import BFLOAT16, KEPT
from .protocol import PairSource
from .shards import ShardSource

TYPES = {str(np.dtype(dtype)): np.dtype(dtype) for dtype in (*KEPT, BFLOAT16)}


def write_shards(
    source: PairSource, folder: str | Path, *, rows_per_shard: int, dtype: Any = None
) -> ShardSource:
    """Write the differences of `source` to a new folder, with its groups and raters, if any, as `groups.npy` and
    `raters.npy`; open it.

    The folder is there whole or not at all; one shard is in memory at a time.

    **Arguments:** `dtype`: float16, bfloat16, float32 or float64; by default as `source` gives them.

    **Raises:** ValueError for a folder that is there already and not empty, for another `dtype`, and for numbers that
    it cannot hold; FileNotFoundError where the folder above it is missing.

    **Example:**

    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from robust_rlhf_jax.sources import ArraySource, write_shards
    >>> folder = pathlib.Path(tempfile.mkdtemp()) / "shards"
    >>> shards = write_shards(ArraySource(np.ones((5, 2))), folder, rows_per_shard=3, dtype="float16")
    >>> shards.n_pairs, sorted(file.name for file in folder.iterdir())
    (5, ['shard-00000.npy', 'shard-00001.npy'])
    """
    folder = Path(folder)
    check_rows(rows_per_shard, "rows_per_shard")
    kind, beside = type_named(dtype), beside_of(source)
    check_new(folder)
    digits = max(5, len(str(source.n_pairs // rows_per_shard)))
    with whole_path(folder, folder=True) as place:
        largest = np.zeros(source.n_features)
        for i, block in enumerate(source.blocks(rows_per_shard)):
            np.save(place / f"shard-{i:0{digits}}.npy", in_type(block, kind), allow_pickle=False)
            largest = np.fmax(largest, np.max(np.abs(block), axis=0, initial=0))
        if kind is not None:
            check_small(largest, kind)
        for name, values in beside.items():
            np.save(place / f"{name}.npy", values, allow_pickle=False)
    return ShardSource(folder)


def beside_of(source: PairSource) -> dict[str, Shaped[np.ndarray, " N"]]:
    """Groups and raters of a source by the names of their files; raters alone where they are the groups.

    **Raises:** ValueError for groups that are neither numbers nor words.
    """
    raters = getattr(source, "raters", None)
    found = {"groups": None if source.groups is raters else source.groups, "raters": raters}
    return {name: plain(values, name) for name, values in found.items() if values is not None}


def type_named(dtype: Any) -> np.dtype | None:
    """**Raises:** ValueError for a type that is not in `TYPES`."""
    if dtype is None:
        return None
    name = dtype if isinstance(dtype, str) else str(jnp.dtype(dtype))
    if name not in TYPES:
        raise ValueError(f"dtype={name!r} is none of {', '.join(TYPES)}: give one of them.")
    return TYPES[name]


def in_type(
    block: Float[np.ndarray, "m k"], kind: np.dtype | None, what: str = "difference"
) -> Float[np.ndarray, "m k"]:
    """**Raises:** ValueError for a finite number that the type cannot hold."""
    if kind is None or block.dtype == kind:
        return block
    with np.errstate(over="ignore"):
        made = block.astype(kind)
    lost = np.isinf(made)
    if lost.any() and (lost := lost & np.isfinite(block)).any():
        raise ValueError(f"The {what} {block[lost][0]:g} is too large for {kind}: give another dtype.")
    return made


def check_small(largest: Float[np.ndarray, " k"], kind: np.dtype) -> None:
    """**Raises:** ValueError for a column whose `largest` entry the type holds with fewer digits, or as 0."""
    small = (largest > 0) & (largest < float(jnp.finfo(kind).tiny))
    if small.any():
        raise ValueError(
            f"Feature {int(np.argmax(small)) + 1} is at most {largest[small][0]:g}, too small for {kind}: multiply it "
            "by a number, or give another dtype."
        )


def plain(values: Shaped[np.ndarray, " N"], name: str) -> Shaped[np.ndarray, " N"]:
    """Values as numbers or words of one length, which a `.npy` file holds.

    **Raises:** ValueError for anything else.
    """
    if values.dtype.kind not in "OT":
        return values
    if not all(isinstance(value, str) for value in values.tolist()):
        raise ValueError(
            f"The {name} are neither numbers nor words, which a .npy file holds: give one of them."
        )
    return values.astype(str)


def check_new(folder: Path) -> None:
    """**Raises:** ValueError for a folder that holds something, FileNotFoundError where the one above it is missing."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} is there already: give a new folder.")
    if not folder.absolute().parent.is_dir():
        raise FileNotFoundError(f"{folder.parent} does not exist: make the folder first.")
