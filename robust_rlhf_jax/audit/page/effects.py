"""What each feature is worth to the robust reward, with an interval."""

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from robust_rlhf_jax.kernels.ranking import highest_first


class Effect(NamedTuple):
    """θ_j times the spread of feature j in pairs, in log-odds, with a 95 % interval; the last three in % of a bar."""

    name: str
    value: float
    low: float
    high: float
    left: float
    right: float
    at: float


def effects(
    theta: np.ndarray, x: np.ndarray, rows: np.ndarray, names: tuple[str, ...], most: int = 20
) -> list[Effect]:
    """The `most` largest effects, by the sandwich covariance H⁻¹JH⁻¹ at the robust θ over the pairs of the mask `rows`.

    `x` [N, p]: chosen − rejected; H = Σ P(1 − P)xxᵀ, J = Σ r²xxᵀ, r = 1 − P (White 1982).
    """
    spread = x[rows].std(axis=0) if rows.any() else np.ones(x.shape[1])
    known = spread > 0
    z = x[rows][:, known] / spread[known]
    p = expit(z @ (theta[known] * spread[known]))
    bread = np.linalg.pinv(z.T @ (z * (p * (1 - p))[:, None]), hermitian=True)
    meat = z.T @ (z * ((1 - p) ** 2)[:, None])
    error = np.sqrt(np.maximum(np.diag(bread @ meat @ bread), 0.0))
    value = (theta * spread)[known]
    order = highest_first(np.abs(value))[:most]
    low, high = value - 1.96 * error, value + 1.96 * error
    widest = max(np.abs(np.concatenate([low[order], high[order]])).max(initial=0), 1e-9)
    place = lambda v: float(round(50 + 50 * np.clip(v / widest, -1, 1), 2))  # noqa: E731
    here = [name for name, there in zip(names, known, strict=True) if there]
    return [
        Effect(
            here[j],
            float(value[j]),
            float(low[j]),
            float(high[j]),
            place(low[j]),
            place(high[j]),
            place(value[j]),
        )
        for j in order
    ]
