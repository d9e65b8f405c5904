"""The exponent p of gap ≈ c·ε^p, with a bootstrap interval over seeds."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

# What a gap must exceed to have a logarithm; far below what any of these worlds resolves.
SMALLEST = 1e-6


class Exponent(NamedTuple):
    """Slope of log gap against log ε, and the ends of its bootstrap interval.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.lab.reproduce import fit_exponent
    >>> found = fit_exponent(np.array([0.1, 0.2]), np.array([[0.1, 0.1], [0.2, 0.3]]), resamples=100)
    >>> found.lower <= found.slope <= found.upper
    True
    """

    slope: float
    lower: float
    upper: float


def fit_exponent(
    epsilons: Float[np.ndarray, " E"],
    gaps: Float[np.ndarray, "E S"],
    *,
    statistic: Callable = np.median,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Exponent:
    """Least-squares slope of log statistic_s gap(ε, s) on log ε; percentile bootstrap over the seeds s.

    A seed is drawn with all its ε together, since they share a data set (Efron & Tibshirani 1993, ch. 13). A
    statistic below 1e-6 counts as 1e-6.

    **Arguments:** `epsilons` [E], positive and distinct, E ≥ 2; `gaps` [E, S]; `statistic`: np.median or np.mean.

    **Raises:** ValueError for other shapes, fewer than two ε, an ε that is not positive, or gaps that are not finite.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.lab.reproduce import fit_exponent
    >>> epsilons = np.array([0.05, 0.1, 0.2])
    >>> round(fit_exponent(epsilons, 3 * epsilons[:, None] ** 0.5 * np.ones(4), resamples=10).slope, 3)
    0.5
    """
    epsilons, gaps = np.asarray(epsilons, float), np.asarray(gaps, float)
    if gaps.ndim != 2 or gaps.shape[:1] != epsilons.shape or len(np.unique(epsilons)) < 2:
        raise ValueError(
            f"epsilons {epsilons.shape} and gaps {gaps.shape} must be [E] and [E, S] with E ≥ 2 distinct ε."
        )
    if not (epsilons > 0).all() or not np.isfinite(gaps).all():
        raise ValueError("epsilons must be positive and gaps finite: give one finite gap per ε and seed.")
    rng = np.random.default_rng(seed)
    seeds = rng.integers(gaps.shape[1], size=(resamples, gaps.shape[1]))
    slopes = _slopes(epsilons, statistic(gaps[:, seeds], axis=2))
    tail = 0.5 * (1 - confidence)
    lower, upper = np.quantile(slopes, (tail, 1 - tail))
    whole = _slopes(epsilons, statistic(gaps, axis=1)[:, None])[0]
    return Exponent(float(whole), float(lower), float(upper))


def _slopes(epsilons: Float[np.ndarray, " E"], gaps: Float[np.ndarray, "E B"]):
    """Slope of each column of `gaps` [E, B]."""
    x = np.log(epsilons) - np.mean(np.log(epsilons))
    return x @ np.log(np.maximum(gaps, SMALLEST)) / (x @ x)
