"""The preferred option's features less the other's, of a block of pairs."""

import numpy as np
from jaxtyping import Bool, Float, Shaped

from .floats import as_block


def preferred(
    first: Shaped[np.ndarray, "m k"],
    second: Shaped[np.ndarray, "m k"] | None = None,
    second_won: Bool[np.ndarray, " m"] | None = None,
) -> Float[np.ndarray, "m k"]:
    """A new array of differences: of `first` less `second` in float32 or float64, or of `first` itself, which holds
    differences, in its own type; the sign turned where the second option won."""
    if second is None:
        x = np.array(as_block(first))
    else:
        sides = as_block(first), as_block(second)
        wide = np.float64 if np.float64 in (sides[0].dtype, sides[1].dtype) else np.float32
        with np.errstate(over="ignore", invalid="ignore"):
            x = np.subtract(*sides, dtype=wide)
    if second_won is not None:
        np.negative(x, out=x, where=second_won[:, None])
    return x


def part(values: Shaped[np.ndarray, "N ..."] | None, rows: slice) -> Shaped[np.ndarray, "m ..."] | None:
    """`values` at `rows`, where there are any."""
    return None if values is None else values[rows]
