"""A folder of `.npy` files: chosen.npy and rejected.npy, or parts of both, and vectors beside them."""

from pathlib import Path
from typing import Any

import numpy as np

from ..npy_arrays import by_number, npy_vector
from ..table import Source, Table
from .array_files import SHOWN, npy_pair, write

ORDER, NAME, SUFFIXES = 90, "npy", ()


def holds(path: Path) -> bool:
    return any("chosen" in file.name for file in path.glob("*.npy"))


def read(path: Path, how: dict[str, Any]) -> Table:
    """**Raises:** ValueError for a part without its partner, or sides that do not match."""
    # What lies beside many parts is in this order too, as `sources.open_pairs` reads and writes it.
    firsts = sorted(
        (file for file in path.glob("*.npy") if "chosen" in file.name), key=lambda file: by_number(file.name)
    )
    seconds = [file.with_name(file.name.replace("chosen", "rejected")) for file in firsts]
    lost = next((file for file in seconds if not file.exists()), None)
    if lost is not None:
        raise ValueError(f"{lost} does not exist: every file of chosen sides needs one of rejected sides.")
    pairs = [npy_pair(a, b) for a, b in zip(firsts, seconds, strict=True)]
    if len({a.shape[1] for a, _ in pairs}) > 1:
        raise ValueError(f"{path}: its files have rows of different lengths: give all alike.")
    sides = pairs[0] if len(pairs) == 1 else tuple(np.concatenate(side) for side in zip(*pairs, strict=True))
    n_rows = len(sides[0])
    beside = {f.stem: f for f in sorted(path.glob("*.npy")) if f not in firsts and f not in seconds}
    more = {name: npy_vector(file, n_rows) for name, file in beside.items()}
    source = Source(path, (*firsts, *seconds), NAME, how={"beside": beside}, shown=SHOWN)
    return Table(source, {"chosen": sides[0], "rejected": sides[1], **more}, n_rows)


__all__ = ["NAME", "ORDER", "SUFFIXES", "holds", "read", "write"]
