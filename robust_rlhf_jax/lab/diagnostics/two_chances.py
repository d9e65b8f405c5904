"""When no algorithm can tell how sure raters are: chances of a win that the same observed pairs fit.

As `two_worlds`, for probabilities: in world B honest raters give a win with chances of their own, not only with those
of another reward. Whoever answers with the chances of world A, where they are true, is wrong in B.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import expit

from .calibration import calibration_gaps, expected_calibration_error
from .two_worlds import least_replaced, same_rows_alike

# P(first is preferred) [n] of differences [n, k].
Chances = Callable[[np.ndarray], np.ndarray]


class ProbabilityCertificate(NamedTuple):
    """`cost`: share of the pairs that must be corrupt if the fit's probabilities are the true ones; `stake`: the
    expected calibration error that the true probabilities of A would have on the honest pairs of that world B."""

    cost: float
    stake: float

    def holds(self, epsilon: float, error: float) -> bool:
        """B is within reach, and the probabilities of A are wrong there by more than `error`."""
        return self.cost <= epsilon and self.stake > error


def certificate_of_probabilities(
    x: Float[np.ndarray, "N k"],
    wins: Float[np.ndarray, " N"],
    believed: Chances,
    theta_a: Float[np.ndarray, " k"],
) -> ProbabilityCertificate:
    """The certificate of the world B in which honest raters give a win with chance `believed(x)`, as the fit says."""
    x, wins = same_rows_alike(np.asarray(x, float), np.asarray(wins, float))
    p, of_a = np.asarray(believed(x), float), expit(x @ theta_a)
    honest, replaced = least_replaced(p, wins)
    right = np.where(of_a > 0.5, p, 1 - p)
    gaps = calibration_gaps(np.maximum(of_a, 1 - of_a), right, honest)
    return ProbabilityCertificate(float(replaced.mean()), expected_calibration_error(gaps))


class LogLossCertificate(NamedTuple):
    """`cost`: share of the pairs that must be corrupt if the chances of B are the true ones; nats a pair that are lost
    on the judged pairs of world B: `stake` by the chances of A, `regret` by the fit's.
    """

    cost: float
    stake: float
    regret: float

    def holds(self, epsilon: float, lost: float) -> bool:
        """B is within reach, the fit loses no more than `lost` there, and the chances of A lose more."""
        return self.cost <= epsilon and self.stake > lost >= self.regret


def certificate_of_log_loss(
    x: Float[np.ndarray, "N k"],
    wins: Float[np.ndarray, " N"],
    of_a: Chances,
    of_b: Chances,
    answer: Chances,
    judged: Float[np.ndarray, "M k"],
) -> LogLossCertificate:
    """The certificate of the world B in which honest raters give a win with chance `of_b(x)`, by E KL(P_B ‖ P)."""
    x, wins = same_rows_alike(np.asarray(x, float), np.asarray(wins, float))
    _, replaced = least_replaced(of_b(x), wins)
    b = of_b(judged)
    stake, regret = (float(np.mean(_divergence(b, chance(judged)))) for chance in (of_a, answer))
    return LogLossCertificate(float(replaced.mean()), stake, regret)


def _divergence(p, q):
    """KL(p ‖ q) of two coins, in nats; chances at 1e-9 from 0 and 1 at least."""
    p, q = (np.clip(np.asarray(chance, float), 1e-9, 1 - 1e-9) for chance in (p, q))
    return p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))
