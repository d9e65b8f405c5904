"""Whether the numbers of a table fit into the floats that JAX holds."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np


def check_range(path: Path, names: tuple[str, ...], chosen: np.ndarray, rejected: np.ndarray) -> None:
    """Check that the entries, and what chosen and rejected differ by, are finite in the float that JAX holds.

    **Raises:** ValueError that names the file, the column and the row.
    """
    most = jnp.finfo(jax.dtypes.canonicalize_dtype(np.float64)).max
    for kind, values in (("chosen_", chosen), ("rejected_", rejected)):
        _check_most(path, kind, names, values, most)
    with np.errstate(over="ignore"):
        _check_most(path, "chosen − rejected ", names, chosen - rejected, most)


def _check_most(path, kind, names, values, most):
    bad = np.argwhere(~(np.abs(values) <= float(most)))
    if bad.size:
        row, column = bad[0]
        raise ValueError(
            f"{path}: column {kind}{names[column]} is {values[row, column]:g} in row {row + 1}, more than a float "
            f"holds ({float(most):.2g}): give the feature in a larger unit."
        )
