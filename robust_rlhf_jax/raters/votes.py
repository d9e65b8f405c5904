"""Votes with ties, by rater: how surely each rater follows the crowd's reward, and how often each one ties."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from scipy.special import softmax

from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.io.frames import in_order
from robust_rlhf_jax.io.given_arrays import other_parts, same_parts
from robust_rlhf_jax.io.unnamed_raters import each_named
from robust_rlhf_jax.kernels.linalg import einsum, matmul
from robust_rlhf_jax.preferences import group_numbers
from robust_rlhf_jax.rewards import RewardModel, fit_reward
from robust_rlhf_jax.terminal import counted, some_of

from ._places import places_of

# What is tried of each rater: how surely a label follows the margin of the crowd, and log ν, by which 0.3 to 96 % of
# even pairs tie.
RELIABILITIES, TIES = np.linspace(-3.0, 6.0, 37), np.linspace(-5.0, 4.0, 37)
# Around the best point of that grid a finer one of so many points a side, one coarse step each way: a rater with many
# votes is known better than the coarse grid tells.
FINE = 25
# Rounds of EM; the spread that it begins with, and raters that count as seen with that spread; the least spread.
ROUNDS, FIRST_SPREAD, SEEN, LEAST_SPREAD = 60, 0.5, 2.0, 0.05
# Nodes of Gauss–Hermite quadrature along each axis, by which chances are averaged over what is not known of a rater.
NODES = 5


class RaterVotes(NamedTuple):
    """For each rater [K], and the crowd last [K + 1]: posterior `mean` and `covariance` of (a, b), reliability and
    log ν; `names`; `reward`: the crowd's, fitted without looking at raters.

    **Example:**

    >>> from robust_rlhf_jax import preferences, raters
    >>> votes = raters.fit_votes(preferences.rail_pairs().take(range(400)))  # nobody ties there
    >>> bool((votes.mean[:-1, 0] > 0).all()), float(votes.chances([[-1.0, 0.0, 0.0, 0.0]])[0, 1]) < 0.01
    (True, True)
    """

    mean: Float[np.ndarray, "K+1 2"]
    covariance: Float[np.ndarray, "K+1 2 2"]
    names: np.ndarray
    reward: RewardModel

    __eq__, __ne__ = same_parts, other_parts

    def __repr__(self) -> str:
        """How many raters, and of how many features their reward is."""
        raters = counted(len(self.names), "rater") + some_of(self.names.tolist())
        features = counted(len(self.reward.theta), "feature") + some_of(self.reward.names)
        return f"RaterVotes({raters} by a reward of {features})"

    @property
    def reliability(self) -> Float[np.ndarray, " K"]:
        """a_k over its mean over raters: 1 for one as sure as the crowd, 0 for a coin, below 0 for the opposite."""
        return self.mean[:-1, 0] / max(float(self.mean[-1, 0]), 0.1)

    def chances(
        self, differences: Float[np.ndarray, "M p"], raters: np.ndarray | None = None
    ) -> Float[np.ndarray, "M 3"]:
        """P(first), P(tie), P(second) [M, 3] as each rater votes; of a rater who is not known or has no name, or where
        None is given, as anybody of the crowd does. A number is found however it is written: 4, 4.0 or "4". The
        columns of a data frame are taken by the names of the features.

        **Raises:** ValueError for another number of features or of raters, or a data frame that lacks a feature.
        """
        theta = np.asarray(self.reward.theta, float)
        x = np.asarray(in_order(differences, self.reward.names, len(theta)), float)
        if x.ndim != 2 or x.shape[1] != len(theta):
            raise ValueError(f"differences has shape {x.shape}: give [M, {len(theta)}], as in the fit.")
        margins = x @ theta
        who = np.full(len(margins), len(self.names)) if raters is None else places_of(raters, self.names)
        if who.shape != margins.shape:
            raise ValueError(f"raters has shape {who.shape}: give one for each of the {len(margins)} pairs.")
        return averaged_chances(margins, self.mean[who], self.covariance[who])


def fit_votes(data: Pairs, raters: np.ndarray | None = None) -> RaterVotes:
    """P(first, tie, second) ∝ (e^{a_k m/2}, e^{b_k}, e^{−a_k m/2}) for rater k and a margin m of `fit_reward`.

    a_k ~ N(α, ω²) and b_k ~ N(β, τ²), so that a rater with few votes is as the crowd; EM finds α, β, ω and τ, exactly
    on a grid of (a, b). The crowd's reward stays as it is.

    **Arguments:** `data`: pairs with or without ties; `raters` [N]: who voted (any values); None: those of the pairs.

    **Raises:** ValueError as `fit_reward`, without raters, and for another number of them; TypeError for anything but
    `Pairs`.

    **Source:** Davidson 1970 for ties; reliability after Dawid & Skene 1979; shrinkage after Efron & Morris 1973.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax import Pairs, raters
    >>> rng = np.random.default_rng(0)
    >>> x, who = rng.normal(size=(900, 1)), np.repeat(np.arange(30), 30)
    >>> strength = np.where(rng.random(900) < np.where(who < 10, 0.6, 0.1), 0.0, 1.0)  # ten raters tie often
    >>> signs = np.where(rng.logistic(size=900) < 2 * x[:, 0], 1, -1)
    >>> votes = raters.fit_votes(Pairs(x * signs[:, None], 0 * x, strength=strength), who)
    >>> bool(votes.mean[:10, 1].min() > votes.mean[10:30, 1].max())
    True
    """
    if not isinstance(data, Pairs):
        raise TypeError(
            f"data is of the type {type(data).__name__}: give Pairs, ties among them if there are any."
        )
    raters = data.raters if raters is None else each_named(raters)
    if raters is None:
        raise ValueError("nobody says who labelled the pairs: give raters, one for each pair.")
    if raters.shape != (data.n_pairs,):
        raise ValueError(
            f"raters has shape {raters.shape}: give one rater for each of the {data.n_pairs} pairs."
        )
    reward = fit_reward(data, groups=raters)
    counted = np.flatnonzero(np.asarray(data.fitted | data.ties))
    data, raters = data.take(counted), raters[counted]
    names = np.unique(raters)
    margins = matmul(jnp.asarray(data.preferred_differences()), reward.theta)
    mean, covariance = _posterior(
        margins, jnp.asarray(data.ties), group_numbers(raters, data.n_pairs), len(names)
    )
    return RaterVotes(np.asarray(mean, float), np.asarray(covariance, float), names, reward)


def averaged_chances(
    margins: Float[np.ndarray, " M"], mean: Float[np.ndarray, "M 2"], covariance: Float[np.ndarray, "M 2 2"]
) -> Float[np.ndarray, "M 3"]:
    """The chances of the three outcomes, averaged over (a, b) ~ N(mean, covariance)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    root = np.linalg.cholesky(covariance)
    total = np.zeros((len(margins), 3))
    for i, u in enumerate(nodes):
        for j, v in enumerate(nodes):
            a, b = (mean + root @ np.array([u, v])).T
            total += (
                weights[i]
                * weights[j]
                * softmax(np.stack([0.5 * a * margins, b, -0.5 * a * margins], axis=1), axis=1)
            )
    return total / np.sum(weights) ** 2


class _Crowd(NamedTuple):
    """`mean` and `spread` [2] of (a, b) over raters."""

    mean: Float[Array, " 2"]
    spread: Float[Array, " 2"]

    def posterior(
        self, likelihood: Float[Array, "K A B"], a: Float[Array, "*K A"], b: Float[Array, "*K B"]
    ) -> Float[Array, "K A B"]:
        """The chance of each point of a grid of (a, b), the same grid for all raters or one of its own for each."""
        from_a, from_b = ((x - self.mean[i]) / self.spread[i] for i, x in enumerate((a, b)))
        logs = likelihood - 0.5 * (from_a[..., :, None] ** 2 + from_b[..., None, :] ** 2)
        return jax.nn.softmax(logs.reshape(len(logs), -1), axis=1).reshape(logs.shape)


@partial(jax.jit, static_argnames="n_raters")
def _posterior(
    margins: Float[Array, " N"], tied: Bool[Array, " N"], raters: Int[Array, " N"], n_raters: int
) -> tuple[Float[Array, "K+1 2"], Float[Array, "K+1 2 2"]]:
    """Mean and covariance of (a, b) of every rater, and of the crowd last, exactly on the grid."""
    a, b = (jnp.asarray(values, margins.dtype) for values in (RELIABILITIES, TIES))
    likelihood = jax.lax.map(lambda one: _likelihood(one * margins, b, tied, raters, n_raters), a)
    likelihood = jnp.moveaxis(likelihood, 0, 1)  # [K, A, B]
    crowd = _crowd_of(likelihood, a, b, jnp.mean(tied, dtype=margins.dtype))
    chance = crowd.posterior(likelihood, a, b)
    mean, square = _moments(chance, a, b)
    covariance = square - mean[:, :, None] * mean[:, None, :]
    best = jnp.argmax(chance.reshape(n_raters, -1), axis=1)
    peak = jnp.stack([a[best // len(b)], b[best % len(b)]], axis=1)
    steps = jnp.stack([a[1] - a[0], b[1] - b[0]])
    fine_mean, fine_covariance = _near_peak(margins, tied, raters, peak, steps, crowd)
    # Where one axis is narrower than a coarse step, the coarse sum misses the shape of the peak.
    narrow = jnp.any(jnp.diagonal(covariance, axis1=1, axis2=2) < (0.5 * steps) ** 2, axis=1)
    mean = jnp.where(narrow[:, None], fine_mean, mean)
    covariance = jnp.where(narrow[:, None, None], fine_covariance, covariance)
    # Above 0, so that a factor of it exists.
    covariance = covariance + 1e-6 * jnp.eye(2, dtype=mean.dtype)
    of_crowd = crowd.mean[None], jnp.diag(crowd.spread**2)[None]
    return jnp.concatenate([mean, of_crowd[0]]), jnp.concatenate([covariance, of_crowd[1]])


def _crowd_of(
    likelihood: Float[Array, "K A B"], a: Float[Array, " A"], b: Float[Array, " B"], tied: Float[Array, ""]
) -> _Crowd:
    """The crowd by EM, from the share of votes that are `tied`."""
    n_raters = len(likelihood)

    def round_of(_: int, crowd: _Crowd) -> _Crowd:
        mean, square = _moments(crowd.posterior(likelihood, a, b), a, b)
        middle = jnp.mean(mean, axis=0)
        spread = jnp.sum(jnp.diagonal(square, axis1=1, axis2=2), axis=0) - n_raters * middle**2
        variance = (spread + SEEN * FIRST_SPREAD**2) / (n_raters + SEEN)
        return _Crowd(middle, jnp.maximum(jnp.sqrt(jnp.maximum(variance, 0.0)), LEAST_SPREAD))

    share = jnp.clip(tied, 1e-4, 1.0 - 1e-4)
    # Among even pairs the share ν/(2 + ν) ties.
    start = jnp.clip(jnp.log(2.0 * share / (1.0 - share)), b[0], b[-1])
    first = _Crowd(jnp.stack([jnp.ones_like(start), start]), jnp.full(2, FIRST_SPREAD, a.dtype))
    return jax.lax.fori_loop(0, ROUNDS, round_of, first)


def _moments(
    chance: Float[Array, "K A B"], a: Float[Array, " A"], b: Float[Array, " B"]
) -> tuple[Float[Array, "K 2"], Float[Array, "K 2 2"]]:
    """Means and second moments of (a, b) of every rater."""
    of_a, of_b = jnp.sum(chance, axis=2), jnp.sum(chance, axis=1)
    mean = jnp.stack([matmul(of_a, a), matmul(of_b, b)], axis=1)
    across = einsum("kab,a,b->k", chance, a, b)
    rows = [jnp.stack([matmul(of_a, a**2), across], 1), jnp.stack([across, matmul(of_b, b**2)], 1)]
    return mean, jnp.stack(rows, axis=1)


def _likelihood(
    margins: Float[Array, " N"],
    log_ties: Float[Array, "*N B"],
    tied: Bool[Array, " N"],
    raters: Int[Array, " N"],
    n_raters: int,
) -> Float[Array, "K B"]:
    """Σ_{i∈k} log P(outcome i) for each ν; of a decided pair the first option is the preferred one."""
    half = 0.5 * margins[:, None]
    total = jnp.logaddexp(jnp.logaddexp(half, -half), log_ties)
    return jax.ops.segment_sum(jnp.where(tied[:, None], log_ties, half) - total, raters, n_raters)


def _near_peak(
    margins: Float[Array, " N"],
    tied: Bool[Array, " N"],
    raters: Int[Array, " N"],
    peak: Float[Array, "K 2"],
    steps: Float[Array, " 2"],
    crowd: _Crowd,
) -> tuple[Float[Array, "K 2"], Float[Array, "K 2 2"]]:
    """Mean and covariance of (a, b) on a fine grid of its own for each rater, `steps` each way around its `peak`."""
    ladder = jnp.linspace(-1.0, 1.0, FINE, dtype=margins.dtype)
    a, b = peak[:, :1] + steps[0] * ladder, peak[:, 1:] + steps[1] * ladder  # [K, FINE]
    each = lambda column: _likelihood(column[raters] * margins, b[raters], tied, raters, len(peak))  # noqa: E731
    chance = crowd.posterior(jnp.moveaxis(jax.lax.map(each, a.T), 0, 1), a, b)
    points = jnp.stack(
        [jnp.broadcast_to(a[:, :, None], chance.shape), jnp.broadcast_to(b[:, None, :], chance.shape)], -1
    )
    mean = einsum("kab,kabi->ki", chance, points)
    away = points - mean[:, None, None]
    return mean, einsum("kab,kabi,kabj->kij", chance, away, away)
