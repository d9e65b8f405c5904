"""How far predicted probabilities are from what happens."""

import numpy as np
from jaxtyping import Float

BINS = 10


def calibration_gaps(
    confidence: Float[np.ndarray, " m"],
    right: Float[np.ndarray, " m"],
    weights: Float[np.ndarray, " m"] | float = 1.0,
) -> list[float]:
    """Σ_{n in b} w_n (right_n − confidence_n)/N of bins b of confidence from ½ to 1; Σ|gap| is the expected calibration
    error (Guo et al. 2017). Gaps are averaged over folds before: of one fold with few pairs, chance alone makes it .05.
    """
    of = np.minimum(((confidence - 0.5) * 2 * BINS).astype(int), BINS - 1)
    gaps = weights * (right - confidence)
    return [float(np.sum(gaps[of == b])) / len(right) for b in range(BINS)]


def expected_calibration_error(gaps) -> float:
    """Σ_b |gap_b| of `calibration_gaps`."""
    return float(np.sum(np.abs(gaps)))
