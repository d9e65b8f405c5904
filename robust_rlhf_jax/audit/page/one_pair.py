"""What a page shows of one pair: its texts, or the features in which its sides differ most."""

import numpy as np

from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.kernels.ranking import highest_first

MOST_FEATURES = 6


def texts_of(pairs: Pairs, i: int) -> dict[str, str] | None:
    """Prompt, chosen and rejected text of pair i; None for a file without texts."""
    if pairs.texts is None:
        return None
    return {side: getattr(pairs.texts, side)[i] for side in ("prompt", "chosen", "rejected")}


def largest_differences(pairs: Pairs, i: int) -> list[tuple[str, float]]:
    """Name and value of the features in which the chosen side differs most from the rejected."""
    x = np.asarray(pairs.chosen[i], np.float64) - np.asarray(pairs.rejected[i], np.float64)
    order = highest_first(np.abs(x))[:MOST_FEATURES]
    return [(pairs.names[j], float(x[j])) for j in order]
