"""Labels flipped at random, found by how wrong the surest held-out predictions are."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

# Shares that are tried; the fall of the log-likelihood that a 95 % interval allows, and that says "not by chance".
SHARES = np.concatenate([[0.0], np.geomspace(0.002, 0.45, 60)])
ALLOWED_FALL, CERTAIN_FALL = 1.92, 6.0
# What no model of choices gets right: added on both ends of the interval, as `rewards.share` does.
NONLINEARITY = 0.025
# Clean sets of people's choices show so many lapses: below, they are no evidence of corruption.
LAPSES = 0.01
STEPS = 25


class Flips(NamedTuple):
    """`share` q and `scale` s of P(agree) = (1 − q)σ(s·m) + qσ(−s·m); [`lower`, `upper`] of q; `evident`: q, or 0."""

    share: float
    scale: float
    lower: float
    upper: float

    @property
    def evident(self) -> float:
        return self.share if self.lower > LAPSES else 0.0


def estimate_flips(margins: Float[np.ndarray, " N"]) -> Flips:
    """Maximum likelihood of (q, s) from held-out margins m_n = o_nθᵀx_n, with an interval of q by profile likelihood.

    Flips at random are to first order a smaller scale; only pairs with large margins tell the two apart. The interval
    is of 95 %, and `upper` .025 more, since no reward is quite right; `lower` is 0 unless q = 0 is less likely by
    exp(6).
    """
    m = np.clip(np.asarray(margins, np.float64), -60.0, 60.0)
    log_s, profile, scales = 0.0, [], []
    for q in SHARES:
        log_s = _best_scale(m, q, log_s)
        scales.append(np.exp(log_s))
        profile.append(_likelihood(m, q, log_s))
    profile = np.asarray(profile)
    best = int(np.argmax(profile))
    allowed = np.flatnonzero(profile >= profile[best] - ALLOWED_FALL)
    significant = profile[best] - profile[0] > CERTAIN_FALL
    lower = float(SHARES[allowed[0]]) if significant else 0.0
    upper = min(float(SHARES[allowed[-1]]) + NONLINEARITY, 0.5)
    return Flips(float(SHARES[best]), float(scales[best]), lower, upper)


def posterior(margins: Float[np.ndarray, " N"], flips: Flips, share: float) -> Float[np.ndarray, " N"]:
    """P(label is flipped | label), where a `share` of the labels is: q(1 − p)/((1 − q)p + q(1 − p)), p = σ(s·m)."""
    p = _sigmoid(flips.scale * np.asarray(margins, np.float64))
    return share * (1.0 - p) / ((1.0 - share) * p + share * (1.0 - p))


def _likelihood(m, q, log_s):
    p = _sigmoid(np.exp(log_s) * m)
    return float(np.sum(np.log(np.maximum((1.0 - q) * p + q * (1.0 - p), 1e-300))))


def _best_scale(m, q, log_s):
    """Fisher scoring in log s, from the last share's."""
    for _ in range(STEPS):
        p = _sigmoid(np.exp(log_s) * m)
        mix = np.clip((1.0 - q) * p + q * (1.0 - p), 1e-12, 1.0 - 1e-12)
        slope = (1.0 - 2.0 * q) * p * (1.0 - p) * np.exp(log_s) * m
        move = np.clip(np.sum(slope / mix) / max(np.sum(slope**2 / (mix * (1.0 - mix))), 1e-12), -0.5, 0.5)
        log_s = float(np.clip(log_s + move, -4.0, 4.0))
        if abs(move) < 1e-6:
            break
    return log_s


def _sigmoid(value):
    return 1.0 / (1.0 + np.exp(-np.clip(value, -40.0, 40.0)))
