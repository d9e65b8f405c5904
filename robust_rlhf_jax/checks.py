"""Host-side checks of single values that every public function shares."""

import jax
import numpy as np


def is_traced(x) -> bool:
    """Whether x is known only to the compiler: then its values cannot be checked."""
    return isinstance(x, jax.core.Tracer)


def check_epsilon(epsilon) -> None:
    """ε ∈ [0, ½), scalar or array; a traced ε passes.

    **Raises:** ValueError naming the value.
    """
    if is_traced(epsilon):
        return
    values = np.asarray(epsilon, np.float64)
    bad = values[~((values >= 0) & (values < 0.5))]
    if bad.size:
        raise ValueError(
            f"epsilon={bad.flat[0]:.6g} is outside [0, 0.5): it is the fraction of pairs that may be corrupt, "
            "and no estimator survives one half."
        )
