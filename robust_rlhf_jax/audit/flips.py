"""Labels flipped at random, found by how often the most certain held-out predictions fail.

People differ in taste and pairs in difficulty, and both make sure predictions fail more often than a logistic model
allows. Flips count as found only where such differences do not explain the failures.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import expit

from robust_rlhf_jax.rewards import RobustFit

# The fall of the log-likelihood that a 95 % interval allows, and that one-sided 99 % confidence asks for (χ²₁/2).
ALLOWED_FALL, CERTAIN_FALL = 1.92, 3.0
# Added to the upper end of the interval, as in `rewards.interval`, since no model of choices is exact.
NONLINEARITY = 0.025
# Clean sets of people's choices have this share of lapses, so that fewer are no evidence of corruption.
LAPSES = 0.01
# A larger share of flips is not admitted as an explanation, as in `rewards.decision`: a poor reward, whose accuracy
# does not depend on its margin, looks as if a third of the labels were flipped.
MOST_FLIPS = RobustFit().ceiling * RobustFit().allowance
# Bounds of log s, spread, taste and q, and where the search starts.
BOUNDS = ((-3.0, 4.0), (0.0, 1.5), (0.0, 8.0), (0.0, 0.49))
STARTS = ((0.3, 0.3), (1.0, 0.1), (0.1, 1.0))
BISECTIONS = 7
# Pairs that are used at most: more would not make four numbers more certain.
MOST = 20_000
# Quadrature over a normal variable.
NODES, MASSES = np.polynomial.hermite_e.hermegauss(9)
MASSES = MASSES / MASSES.sum()


class Differences(NamedTuple):
    """How honest choices differ: P(agree) = E_ξ σ(s·e^{aξ}·m/√(1 + πb²‖z‖²/8)), ξ ~ N(0, 1).

    `scale` s; `spread` a: how much the difficulty of pairs varies; `taste` b: how far people's rewards lie from the
    mean, per unit of length ‖z‖ (the usual normal approximation of a logistic mixture).
    """

    scale: float
    spread: float = 0.0
    taste: float = 0.0

    def agree(
        self, margins: Float[np.ndarray, " N"], lengths: Float[np.ndarray, " N"]
    ) -> Float[np.ndarray, " N"]:
        """P(an honest label agrees with the reward's sign · m)."""
        parameters = np.array([np.log(self.scale), self.spread, self.taste])
        return _honest(parameters, *_clipped(margins, lengths))[0]


class Flips(NamedTuple):
    """`share` q of P(label) = (1 − q)P(agree) + q(1 − P(agree)), in [`lower`, `upper`]; `honest`: the other labels."""

    share: float
    honest: Differences
    lower: float
    upper: float

    @property
    def evident(self) -> float:
        return self.share if self.lower > LAPSES else 0.0


def estimate_flips(
    margins: Float[np.ndarray, " N"], lengths: Float[np.ndarray, " N"], *, upper: bool = True
) -> Flips:
    """Maximum likelihood of (q, s, a, b) from held-out margins m_n = o_nθᵀx_n and lengths ‖z_n‖ of whitened rows.

    The interval is by profile likelihood, of 95 %, and `upper` .025 more, since no reward is quite right. `share` and
    `lower` are 0 unless differences alone (q = 0) are less likely by e³, and where `lower` would exceed `MOST_FLIPS`.
    At most 20,000 pairs, drawn at random, are looked at.

    **Arguments:** `upper`: whether that end is wanted, which takes more than half of the time; else it is ½.
    """
    m, v = _clipped(*_sample(np.asarray(margins), np.asarray(lengths)))
    none = min((_fit(m, v, 0.0, (0.3, *start)) for start in STARTS), key=lambda f: f.fun)
    some = min((_fit(m, v, None, (0.3, *start)) for start in STARTS), key=lambda f: f.fun)
    q = float(some.x[3])

    def allowed(share: float):
        return _fit(m, v, share, some.x[:3]).fun <= some.fun + ALLOWED_FALL

    most = min(_last(allowed, q, BOUNDS[3][1]) + NONLINEARITY, 0.5) if upper else 0.5
    if none.fun - some.fun <= CERTAIN_FALL:
        return Flips(0.0, _differences(none.x), 0.0, most)
    lower = _last(allowed, q, 0.0)
    if lower > MOST_FLIPS:
        return Flips(0.0, _differences(none.x), 0.0, most)
    return Flips(q, _differences(some.x), lower, most)


def posterior(chance: Float[np.ndarray, " N"], share: float) -> Float[np.ndarray, " N"]:
    """P(label is flipped | label), where a `share` q of the labels is: q(1 − p)/((1 − q)p + q(1 − p)).

    **Arguments:** `chance` p: of an honest label to be this one.
    """
    return share * (1.0 - chance) / ((1.0 - share) * chance + share * (1.0 - chance))


def _sample(margins: Float[np.ndarray, " N"], lengths: Float[np.ndarray, " N"]):
    if len(margins) <= MOST:
        return margins, lengths
    rows = np.random.default_rng(0).choice(len(margins), MOST, replace=False)
    return margins[rows], lengths[rows]


def _clipped(margins: Float[np.ndarray, " N"], lengths: Float[np.ndarray, " N"]):
    """m and π‖z‖²/8 in float64, within what exp bears."""
    m = np.clip(np.asarray(margins, np.float64), -60.0, 60.0)
    return m, np.minimum(np.asarray(lengths, np.float64), 1e6) ** 2 * np.pi / 8


def _honest(parameters: Float[np.ndarray, "3"], m: Float[np.ndarray, " N"], v: Float[np.ndarray, " N"]):
    """(P(agree) [N], its derivative by (log s, a, b) [3, N])."""
    log_s, a, b = parameters
    variance = 1.0 + b * b * v
    u = np.exp(log_s) * m / np.sqrt(variance)
    chance, by = np.zeros_like(m), np.zeros((3, len(m)))
    for node, mass in zip(NODES, MASSES, strict=True):
        margin = u * np.exp(a * node)
        p = expit(margin)
        slope = mass * p * (1.0 - p) * margin
        chance += mass * p
        by[0] += slope
        by[1] += slope * node
    by[2] = -by[0] * b * v / variance
    return np.minimum(chance, 1.0), by  # the masses sum to 1 but for rounding


def _fit(m: Float[np.ndarray, " N"], v: Float[np.ndarray, " N"], share: Any, start: Sequence[float]):
    """SciPy's result of maximum likelihood over (log s, a, b), and over q too where `share` is None."""
    from scipy.optimize import minimize  # half a second that no other import needs

    free = share is None

    def loss(parameters: np.ndarray):
        chance, by = _honest(parameters[:3], m, v)
        q = parameters[3] if free else share
        mixed = np.maximum((1.0 - 2.0 * q) * chance + q, 1e-12)
        slope = -(1.0 - 2.0 * q) * (by / mixed).sum(axis=1)
        return -np.log(mixed).sum(), np.append(
            slope, -((1.0 - 2.0 * chance) / mixed).sum()
        ) if free else slope

    first = np.append(start, 0.05) if free else np.asarray(start)
    return minimize(loss, first, jac=True, method="L-BFGS-B", bounds=BOUNDS[: len(first)])


def _last(allowed: Callable[[float], bool], inside: float, outside: float) -> float:
    """The share between `inside`, which is allowed, and `outside` where `allowed` ends, by bisection."""
    if allowed(outside):
        return outside
    for _ in range(BISECTIONS):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if allowed(middle) else (inside, middle)
    return inside


def _differences(parameters: np.ndarray) -> Differences:
    return Differences(float(np.exp(parameters[0])), float(parameters[1]), float(parameters[2]))
