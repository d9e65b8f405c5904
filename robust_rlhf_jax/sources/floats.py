"""The numbers that sources pass on: half, single and double precision as stored, whole numbers as floats."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Shaped

BFLOAT16 = np.dtype(jnp.bfloat16)
KEPT = (np.float16, np.float32, np.float64)


def block_type(stored: np.dtype, what: str) -> np.dtype:
    """The type of the blocks of numbers that are `stored` in this type.

    NumPy writes bfloat16 as two bytes without a meaning, `|V2`, and is taken at that.

    **Raises:** ValueError, which names `what`, for anything but numbers.
    """
    if stored.kind == "V" and stored in (BFLOAT16, np.dtype("V2")):
        return BFLOAT16
    if stored.kind == "f" and stored.newbyteorder("=") in KEPT:
        return stored.newbyteorder("=")
    if stored == np.uint16:
        raise ValueError(
            f"{what} holds uint16: view bits of bfloat16 as that type, or give whole numbers as int32."
        )
    if stored.kind in "biu":
        return np.result_type(stored, np.float32)
    raise ValueError(f"{what} holds {stored}: give float16, bfloat16, float32 or float64.")


def as_block(values: Shaped[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    """`values` in the type of `block_type`, without a copy where they have it."""
    wanted = block_type(values.dtype, "The block")
    return values.view(wanted) if values.dtype.kind == "V" else values.astype(wanted, copy=False)


def check_shape(shape: tuple[int, ...], what: str) -> None:
    """**Raises:** ValueError, which names `what`, for any shape but [N, k] with N ≥ 1 and k ≥ 1."""
    if len(shape) != 2 or 0 in shape:
        raise ValueError(f"{what} has shape {shape}: give [N, k], with N ≥ 1 pairs of k ≥ 1 features.")
