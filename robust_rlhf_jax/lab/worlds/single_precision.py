"""A world that NumPy made, as arrays of JAX."""

import jax
import numpy as np

from robust_rlhf_jax.mdp import LinearMDP


def in_single_precision(**arrays: np.ndarray) -> LinearMDP:
    """The MDP of these arrays, rounded by NumPy: JAX would compile a program for the rounding of each shape."""
    return LinearMDP(**{name: jax.device_put(values.astype(np.float32)) for name, values in arrays.items()})
