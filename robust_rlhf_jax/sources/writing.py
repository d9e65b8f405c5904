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
    """Write the differences of `source` to a new folder, with its groups, if any, as `groups.npy`; open it.

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
    check_rows(rows_per_shard)
    kind, groups = _type(dtype), _plain(source.groups)
    _check_new(folder)
    digits = max(5, len(str(source.n_pairs // rows_per_shard)))
    with whole_path(folder, folder=True) as place:
        for i, block in enumerate(source.blocks(rows_per_shard)):
            np.save(place / f"shard-{i:0{digits}}.npy", _cast(block, kind), allow_pickle=False)
        if groups is not None:
            np.save(place / "groups.npy", groups, allow_pickle=False)
    return ShardSource(folder)


def _type(dtype: Any) -> np.dtype | None:
    if dtype is None:
        return None
    name = dtype if isinstance(dtype, str) else str(jnp.dtype(dtype))
    if name not in TYPES:
        raise ValueError(f"dtype={name!r} is none of {', '.join(TYPES)}: give one of them.")
    return TYPES[name]


def _cast(block: Float[np.ndarray, "m k"], kind: np.dtype | None) -> Float[np.ndarray, "m k"]:
    if kind is None or block.dtype == kind:
        return block
    with np.errstate(over="ignore"):
        cast = block.astype(kind)
    lost = np.isinf(cast)
    if lost.any() and (lost := lost & np.isfinite(block)).any():
        raise ValueError(f"The difference {block[lost][0]:g} is too large for {kind}: give another dtype.")
    return cast


def _plain(groups: Shaped[np.ndarray, " N"] | None) -> Shaped[np.ndarray, " N"] | None:
    """Groups as numbers or words of one length, which a `.npy` file holds."""
    if groups is None or groups.dtype.kind not in "OT":
        return groups
    if not all(isinstance(group, str) for group in groups.tolist()):
        raise ValueError(
            "The groups are neither numbers nor words, which a .npy file holds: give one of them."
        )
    return groups.astype(str)


def _check_new(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} is there already: give a new folder.")
    if not folder.absolute().parent.is_dir():
        raise FileNotFoundError(f"{folder.parent} does not exist: make the folder first.")
