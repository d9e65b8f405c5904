"""Rao's score test for each rater: do the labels of one person follow the reward of all?"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.checks import as_floats
from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.kernels.lapack import cholesky, cholesky_solve, eigh
from robust_rlhf_jax.kernels.linalg import einsum, matmul
from robust_rlhf_jax.kernels.logistic import label_variance
from robust_rlhf_jax.preferences import PreferenceData
from robust_rlhf_jax.rewards import plain_fit
from robust_rlhf_jax.rewards.coordinates import UnitFreePairs, unit_free
from robust_rlhf_jax.row_order import check_rows

from ._by_rater import RowsByRater

# A rater's pairs do not know a direction if they know less of it than this share of what they know of the best one.
UNKNOWN = 1e-3


class Scores(NamedTuple):
    """What each of K raters pulls at θ̂: `score` S_k [K, r], `information` F_k [K, r, r] of their pairs."""

    score: Float[Array, "K r"]
    information: Float[Array, "K r r"]


class ScoreTest(NamedTuple):
    """One row per rater, [K]: `agreement`, about N(0, 1), negative where the rater contradicts the reward; `statistic`,
    about χ² with `degrees` of freedom; the two-sided p-value of the first and that of the second.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax import preferences, raters
    >>> rail, people = preferences.rail_pairs(), preferences.rail_people() - 1
    >>> test = raters.score_test(rail.differences(), rail.labels, people, people.max() + 1)
    >>> test.statistic.shape, int(test.degrees.max())
    ((235,), 4)
    """

    agreement: Float[Array, " K"]
    statistic: Float[Array, " K"]
    degrees: Int[Array, " K"]
    p_agreement: Float[Array, " K"]
    p_taste: Float[Array, " K"]


@partial(jax.jit, static_argnames="n_raters")
def scores_of(
    rows: Float[Array, "N r"], t: Float[Array, " r"], raters: Int[Array, " N"], n_raters: int
) -> Scores:
    """S_k = Σ_{i∈k} r_i y_i and F_k = Σ_{i∈k} P(1 − P) y_i y_iᵀ of oriented differences y at t, by segment sums."""
    pairs, margins = RowsByRater.of(rows, raters, n_raters), matmul(rows, t)
    score = pairs.sums(jax.nn.sigmoid(-margins)[:, None] * rows)
    return Scores(score, pairs.gram(label_variance(margins)))


def score_test(
    x: Float[ArrayLike, "N k"], labels: Float[ArrayLike, " N"], raters: Int[ArrayLike, " N"], n_raters: int
) -> ScoreTest:
    """Whether each rater's labels follow the reward of all. Jit- and vmap-able.

    S_k = Σ_{i∈k} r_i o_i x_i with r = 1 − P(o | x) at the maximum-likelihood θ̂ of all pairs has mean 0 and covariance
    V_k = F_k − F_k F⁻¹F_k if rater k follows θ: F_k is what the rater's pairs know, F what all do, and the second term
    what the fit has taken up of the rater's own labels. Two statistics: θ̂ᵀS_k/√(θ̂ᵀV_kθ̂), which sees raters who agree
    too seldom or too often, and S_kᵀV_k⁺S_k, which sees every other taste.

    **Arguments:** `x` [N, k]: differences, first less second; `labels` [N]: ±1; `raters` [N]: numbers from 0 to
    K − 1; `n_raters`: K, static.

    **Returns:** `ScoreTest`; p-values of single tests: `holm` corrects them for the number of raters. They are those of
    many pairs: with fewer pairs than features, or labels that are nearly certain, χ² is coarse.

    **Raises:** TypeError for `Pairs`, which `rate_raters` takes; ValueError for columns whose rows have the same index
    in another order. Nothing else: `rate_raters` checks its input.

    **Source:** Rao 1948, *Large sample tests of statistical hypotheses*.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax import raters
    >>> x = np.random.default_rng(0).normal(size=(400, 2)).astype(np.float32)
    >>> who = np.repeat(np.arange(10), 40)
    >>> labels = np.where(x[:, 0] > 0, 1.0, -1.0) * np.where(who == 3, -1.0, 1.0)  # rater 3 reverses all
    >>> test = raters.score_test(x, labels, who, 10)
    >>> int(test.agreement.argmin()), bool(test.p_agreement[3] < 1e-6)
    (3, True)
    """
    if isinstance(x, Pairs | PreferenceData):
        raise TypeError(
            f"x is of the type {type(x).__name__}: give its differences, labels and numbers of raters, or call "
            "raters.rate_raters, which takes it as it is."
        )
    check_rows(x=x, labels=labels, raters=raters)
    return _score_test(as_floats(x), jnp.asarray(labels), jnp.asarray(raters), n_raters)


@partial(jax.jit, static_argnames="n_raters")
def _score_test(
    x: Float[Array, "N k"], labels: Float[Array, " N"], raters: Int[Array, " N"], n_raters: int
) -> ScoreTest:
    pairs, t = unit_free_fit(x, labels)
    return tested(scores_of(pairs.rows, t, raters, n_raters), t)


@jax.jit
def tested(scores: Scores, t: Float[Array, " r"]) -> ScoreTest:
    """The tests of raters whose scores at t are known."""
    score, known = scores
    factor = cholesky(_total(known))
    # t̂ has a weak prior, so that the scores do not sum to 0: to first order this is the score without it.
    score = score - matmul(known, cholesky_solve(factor, jnp.sum(score, axis=0)[:, None])[:, 0])
    own = jax.vmap(lambda f: f - matmul(f, cholesky_solve(factor, f)))(known)
    variance = jnp.maximum(einsum("i,kij,j->k", t, own, t), 0.0)
    agreement = jnp.where(
        variance > 0, matmul(score, t) / jnp.sqrt(jnp.where(variance > 0, variance, 1.0)), 0.0
    )
    statistic, degrees = jax.vmap(_chi_square)(score, own)
    p_taste = jax.scipy.special.gammaincc(0.5 * jnp.maximum(degrees, 1), 0.5 * statistic)
    return ScoreTest(
        agreement,
        statistic,
        degrees,
        2.0 * jax.scipy.special.ndtr(-jnp.abs(agreement)),
        jnp.where(degrees > 0, p_taste, 1.0),
    )


@jax.jit
def without_each(scores: Scores, t: Float[Array, " r"]) -> Float[Array, "K r"]:
    """t [K, r] of the fits to all raters but one: t − (F − F_k)⁻¹S_k, a Newton step each."""
    score, known = scores
    total = _total(known)
    # If one rater alone knows a direction, the others say nothing of it: t is left as it is there.
    rest = jax.vmap(lambda f: cholesky(total - f + UNKNOWN * total))(known)
    return t - jax.vmap(lambda factor, s: cholesky_solve(factor, s[:, None])[:, 0])(rest, score)


def _total(known: Float[Array, "K r r"]) -> Float[Array, "r r"]:
    """What all raters know, positive definite off the span, too."""
    total = jnp.sum(known, axis=0)
    return total + (1e-6 * jnp.trace(total) + 1e-12) * jnp.eye(total.shape[0], dtype=total.dtype)


def _chi_square(score: Float[Array, " r"], variance: Float[Array, "r r"]):
    """(SᵀV⁺S, its degrees of freedom)."""
    values, vectors = eigh(0.5 * (variance + variance.T))
    # Eigenvalues of whitened pairs count in pairs: 1e-6 is none.
    kept = values > jnp.maximum(UNKNOWN * values[-1], 1e-6)
    along = matmul(vectors.T, score)
    return jnp.sum(jnp.where(kept, along**2 / jnp.where(kept, values, 1.0), 0.0)), jnp.sum(kept)


def unit_free_fit(x: Float[Array, "N k"], labels: Float[Array, " N"]) -> tuple[UnitFreePairs, Array]:
    """(pairs in coordinates without units, t̂ of maximum likelihood there)."""
    x = as_floats(x)
    labels = jnp.asarray(labels, x.dtype)
    theta, _ = plain_fit(x, labels)
    pairs = unit_free(x, labels)
    return pairs, matmul(pairs.from_theta, theta)
