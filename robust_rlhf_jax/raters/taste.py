"""The taste of each rater: θ_k = θ + u_k, shrunk towards a crowd whose spread the data show."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from robust_rlhf_jax.kernels.lapack import cholesky, cholesky_solve, lower_solve
from robust_rlhf_jax.kernels.linalg import einsum, matmul
from robust_rlhf_jax.kernels.logistic import label_variance, secant_curvature

from ._by_rater import RowsByRater

# Steps to each maximum from the mean of the crowd: by a bound of the likelihood, which cannot overshoot, then by the
# curvature itself.
BY_BOUND, BY_NEWTON = 6, 2
# Parts of a step from the last tastes, of which the best is taken: where labels were certain at the start and the prior
# is broad, the whole step goes far beyond the maximum.
PARTS = (1.0, 4.0**-1, 4.0**-2, 4.0**-3, 4.0**-4, 4.0**-5)


class Crowd(NamedTuple):
    """A normal prior of tastes: `mean` [r] and `covariance` [r, r]."""

    mean: Float[Array, " r"]
    covariance: Float[Array, "r r"]


class Tastes(NamedTuple):
    """Of each of K raters: the likeliest `t` [K, r], the lower Cholesky `factor` [K, r, r] of the curvature H there,
    and the log `evidence` [K] of the rater's labels under the crowd.
    """

    t: Float[Array, "K r"]
    factor: Float[Array, "K r r"]
    evidence: Float[Array, " K"]

    def covariance(self) -> Float[Array, "K r r"]:
        """H⁻¹ of every rater. Few need it, and it takes as long as the rest of the search for the maxima."""
        half = jax.vmap(lambda f: lower_solve(f, jnp.eye(len(f), dtype=f.dtype)))(self.factor)
        return einsum("kji,kjl->kil", half, half)


class _Posterior(NamedTuple):
    """log p(t | labels) of every rater, up to a constant; `precision` is Σ⁻¹, `half_log_det` ½ log|Σ|."""

    pairs: RowsByRater
    mean: Float[Array, " r"]
    precision: Float[Array, "r r"]
    half_log_det: Float[Array, ""]

    @classmethod
    def of(cls, pairs: RowsByRater, crowd: Crowd) -> "_Posterior":
        factor = cholesky(crowd.covariance)
        precision = cholesky_solve(factor, jnp.eye(len(crowd.mean), dtype=crowd.mean.dtype))
        return cls(pairs, crowd.mean, precision, jnp.sum(jnp.log(jnp.diagonal(factor))))

    def factor(self, weights: Float[Array, " N"]) -> Float[Array, "K r r"]:
        """The lower Cholesky factor of Σ⁻¹ + Σ_{i∈k} w_i y_i y_iᵀ."""
        return jax.vmap(cholesky)(self.precision + self.pairs.gram(weights))

    def pull(self, t: Float[Array, "K r"], margins: Float[Array, " N"]) -> Float[Array, "K r"]:
        labels = self.pairs.sums(jax.nn.sigmoid(-margins)[:, None] * self.pairs.rows)
        return labels - matmul(t - self.mean, self.precision)

    def log(self, t: Float[Array, "K r"], margins: Float[Array, " N"]) -> Float[Array, " K"]:
        off = t - self.mean
        labels = self.pairs.sums(jax.nn.log_sigmoid(margins))
        return labels - 0.5 * einsum("ki,ij,kj->k", off, self.precision, off)

    def evidence(self, log: Float[Array, " K"], factor: Float[Array, "K r r"]) -> Float[Array, " K"]:
        diagonals = jnp.diagonal(factor, axis1=1, axis2=2)
        return log - self.half_log_det - jnp.sum(jnp.log(diagonals), axis=1)


def tastes(pairs: RowsByRater, crowd: Crowd, start: Float[Array, "K r"]) -> Tastes:
    """Maximum a posteriori and Laplace's evidence ∫ Π_{i∈k} σ(tᵀy_i) N(t; μ, Σ) dt of every rater. Jit- and vmap-able.

    The search for the maxima begins at `start`.
    With T the maximum and H the curvature there: Σ log σ(Tᵀy) − ½(T − μ)ᵀΣ⁻¹(T − μ) − ½ log|Σ| − ½ log|H|.

    **Source:** MacKay 1992 for the evidence; the bound of Jaakkola & Jordan 2000 for the first steps.
    """
    posterior = _Posterior.of(pairs, crowd)
    linear = matmul(posterior.precision, crowd.mean) + 0.5 * pairs.sums(pairs.rows)

    def by_bound(_, t):
        return _solve(posterior.factor(secant_curvature(pairs.margins(t))), linear)

    def by_newton(_, t):
        margins = pairs.margins(t)
        return t + _solve(posterior.factor(label_variance(margins)), posterior.pull(t, margins))

    t = jax.lax.fori_loop(0, BY_BOUND, by_bound, start)
    t = jax.lax.fori_loop(0, BY_NEWTON, by_newton, t)
    margins = pairs.margins(t)
    factor = posterior.factor(label_variance(margins))
    return Tastes(t, factor, posterior.evidence(posterior.log(t, margins), factor))


def tastes_nearby(pairs: RowsByRater, crowd: Crowd, start: Float[Array, "K r"]) -> Tastes:
    """`tastes` by one Newton step from those of nearly the same crowd, at the price of one factorisation. Jit-able.

    H is the curvature where the step began. Repeated, steps end at the maxima, and H is the curvature there.
    """
    posterior, margins = _Posterior.of(pairs, crowd), pairs.margins(start)
    factor = posterior.factor(label_variance(margins))
    step = _solve(factor, posterior.pull(start, margins))
    gained, part = pairs.margins(step), jnp.asarray(PARTS, start.dtype)
    logs = jax.vmap(lambda a: posterior.log(start + a * step, margins + a * gained))(part)
    best = jnp.argmax(logs, axis=0)
    log = jnp.take_along_axis(logs, best[None], axis=0)[0]
    return Tastes(start + part[best][:, None] * step, factor, posterior.evidence(log, factor))


def _solve(factor: Float[Array, "K r r"], rhs: Float[Array, "K r"]) -> Float[Array, "K r"]:
    return jax.vmap(lambda f, b: cholesky_solve(f, b[:, None])[:, 0])(factor, rhs)
