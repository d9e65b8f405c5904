"""The taste of each rater: θ_k = θ + u_k, shrunk towards a crowd whose spread the data show."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from robust_rlhf_jax.kernels.expected_logistic import expected_logistic
from robust_rlhf_jax.kernels.linalg import einsum, matmul
from robust_rlhf_jax.kernels.logistic import secant_curvature
from robust_rlhf_jax.kernels.sweep import inverses

from ._by_rater import RowsByRater

# Steps to each maximum from the mean of the crowd: by a quadratic bound of the likelihood, which cannot overshoot, then
# by the curvature itself.
BY_BOUND, BY_NEWTON = 6, 6
# A step from the last tastes is cut to so much of it, so many times at most, until the evidence is no less: where
# labels were certain at the start and the prior is broad, the whole step goes far beyond the maximum.
SHORTER, CUTS = 0.25, 5


class Crowd(NamedTuple):
    """A normal prior of tastes: `mean` [r] and `covariance` [r, r]."""

    mean: Float[Array, " r"]
    covariance: Float[Array, "r r"]


class Tastes(NamedTuple):
    """For each of K raters, the normal density N(`t` [K, r], `covariance` [K, r, r]) nearest to that of the taste given
    the labels, and log `evidence` [K] of the labels under the crowd; `variance` [N] of the margin of each pair.
    """

    t: Float[Array, "K r"]
    covariance: Float[Array, "K r r"]
    variance: Float[Array, " N"]
    evidence: Float[Array, " K"]


class _Posterior(NamedTuple):
    """p(t | labels) of every rater, up to a constant; `precision` is Σ⁻¹, `half_log_det` ½ log|Σ|."""

    pairs: RowsByRater
    mean: Float[Array, " r"]
    precision: Float[Array, "r r"]
    half_log_det: Float[Array, ""]

    @classmethod
    def of(cls, pairs: RowsByRater, crowd: Crowd) -> "_Posterior":
        precision, log_det = inverses(crowd.covariance)
        return cls(pairs, crowd.mean, precision, 0.5 * log_det)

    def spread(self, weights: Float[Array, " N"]) -> tuple[Float[Array, "K r r"], Float[Array, " K"]]:
        """(V, ½ log|V|), V⁻¹ = Σ⁻¹ + Σ_{i∈k} w_i y_i y_iᵀ."""
        covariance, log_det = inverses(self.precision + self.pairs.gram(weights))
        return covariance, -0.5 * log_det

    def pull(self, t: Float[Array, "K r"], residual: Float[Array, " N"]) -> Float[Array, "K r"]:
        return self.pairs.sums(residual[:, None] * self.pairs.rows) - matmul(t - self.mean, self.precision)

    def log(self, t: Float[Array, "K r"], log_likelihood: Float[Array, " N"]) -> Float[Array, " K"]:
        off = t - self.mean
        return self.pairs.sums(log_likelihood) - 0.5 * jnp.sum(matmul(off, self.precision) * off, axis=1)

    def evidence(
        self, log: Float[Array, " K"], covariance: Float[Array, "K r r"], log_det: Float[Array, " K"]
    ) -> Float[Array, " K"]:
        # tr Σ⁻¹V as one product: by einsum it takes half as long as all inverses.
        trace = matmul(covariance.reshape(len(covariance), -1), self.precision.reshape(-1))
        return log - 0.5 * (trace - len(self.mean)) - self.half_log_det + log_det


def tastes(pairs: RowsByRater, crowd: Crowd, t: Float[Array, "K r"], variance: Float[Array, " N"]) -> Tastes:
    """The nearest normal density to p(t | labels) of every rater, and a bound of log ∫ Π_{i∈k} σ(tᵀy_i) N(t; μ, Σ) dt.

    N(t, V) maximises the evidence E Σ log σ(tᵀy) − KL(N(t, V) ‖ N(μ, Σ)): V⁻¹ = Σ⁻¹ + Σ E[σ(tᵀy)σ(−tᵀy)] yyᵀ. Unlike
    the maximum of p and the curvature there (Laplace), it does not make the spread of tastes small where raters give
    few answers. The search begins at tastes `t` whose margins have this `variance`. Jit- and vmap-able.

    **Source:** Ormerod & Wand 2012, *Gaussian variational approximate inference for generalized linear mixed models*;
    the bound of Jaakkola & Jordan 2000 for the first steps.
    """
    posterior = _Posterior.of(pairs, crowd)
    linear = matmul(posterior.precision, crowd.mean) + 0.5 * pairs.sums(pairs.rows)

    def by_bound(_, near):
        t, variance = near
        covariance, _ = posterior.spread(secant_curvature(jnp.sqrt(pairs.margins(t) ** 2 + variance)))
        return einsum("kij,kj->ki", covariance, linear), pairs.squares(covariance)

    def by_newton(_, found):
        return _newton_step(posterior, found.t, found.variance)

    t, variance = jax.lax.fori_loop(0, BY_BOUND, by_bound, (t, variance))
    unknown = jnp.zeros((*t.shape, t.shape[1]), t.dtype), variance, jnp.zeros_like(t[:, 0])
    return jax.lax.fori_loop(0, BY_NEWTON, by_newton, Tastes(t, *unknown))


def tastes_nearby(
    pairs: RowsByRater, crowd: Crowd, t: Float[Array, "K r"], variance: Float[Array, " N"]
) -> Tastes:
    """`tastes` by one step from those of nearly the same crowd, at the price of one factorisation. Jit-able.

    V is that of the curvature where the step began, and the evidence is the bound for it. Repeated, steps end at
    `tastes`.
    """
    return _newton_step(_Posterior.of(pairs, crowd), t, variance)


def _newton_step(posterior: _Posterior, t: Float[Array, "K r"], variance: Float[Array, " N"]) -> Tastes:
    pairs = posterior.pairs
    margins = pairs.margins(t)
    _, residual, curvature = expected_logistic(margins, variance)
    covariance, log_det = posterior.spread(curvature)
    variance = pairs.squares(covariance)
    step = einsum("kij,kj->ki", covariance, posterior.pull(t, residual))
    gained = pairs.margins(step)

    def log_at(part):
        ahead = margins + part[pairs.raters] * gained
        return posterior.log(t + part[:, None] * step, expected_logistic(ahead, variance).log_likelihood)

    def cut(state):
        n, part, log = state
        part = jnp.where(log >= least, part, SHORTER * part)
        return n + 1, part, log_at(part)

    least, whole = log_at(jnp.zeros_like(t[:, 0])), jnp.ones_like(t[:, 0])
    goes_on = lambda state: (state[0] < CUTS) & jnp.any(state[2] < least)  # noqa: E731
    _, part, log = jax.lax.while_loop(goes_on, cut, (0, whole, log_at(whole)))
    evidence = posterior.evidence(log, covariance, log_det)
    return Tastes(t + part[:, None] * step, covariance, variance, evidence)
