"""The strength λ of the prior N(0, (λ·diag(penalty))⁻¹) of a reward that its evidence asks for."""

from typing import NamedTuple, Protocol

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax.kernels.divisors import positive_or_one
from robust_rlhf_jax.kernels.linalg import matmul

from .config import RobustFit

# The least standard deviation that the prior gives a margin: next to nothing.
LEAST_MARGIN = 1e-3
# Newton's step for log λ is this much longer or shorter at most than what λ's own fixed point asks for.
LEAP = 0.5


class Prior(Protocol):
    """What the prior needs of coordinates: see `UnitFreePairs`."""

    @property
    def penalty(self) -> Float[Array, " r"]: ...

    @property
    def rank(self) -> Int[Array, ""]: ...


class PriorShare(NamedTuple):
    """What the prior decides of a fit t under λ, by A = λ·√P H⁻¹√P, P = diag(penalty), H the curvature with the prior.

    `left`: tr(A), the axes that the prior and not the pairs decide; `left_twice`: tr(A²); `pull` [r]: H⁻¹λPt, by which
    t grows where log λ falls by 1, to first order.
    """

    left: Float[Array, ""]
    left_twice: Float[Array, ""]
    pull: Float[Array, " r"]


def expected_strength(pairs: Prior) -> Float[Array, ""]:
    """The λ under which margins have variance 1 if every axis has the geometric mean of the penalties: rank over it."""
    logs = jnp.where(pairs.penalty > 0, jnp.log(positive_or_one(pairs.penalty)), 0.0)
    rank = jnp.maximum(pairs.rank, 1)
    return rank * jnp.exp(-jnp.sum(logs) / rank)


def asked_strength(
    pairs: Prior, t: Float[Array, " r"], known: Float[Array, ""], config: RobustFit
) -> Float[Array, ""]:
    """The λ that the evidence at t asks for, where the pairs decide on `known` axes, γ: see `refit`."""
    size = matmul(pairs.penalty, t**2)
    return jnp.clip(
        (jnp.maximum(known, 0.0) + config.prior_axes) / (size + config.prior_axes / expected_strength(pairs)),
        *bounds(pairs, config),
    )


def next_strength(
    pairs: Prior, t: Float[Array, " r"], strength: Float[Array, ""], share: PriorShare, config: RobustFit
) -> tuple[Float[Array, ""], Float[Array, " r"]]:
    """(λ, t under it): one step of Newton's method for log λ where λ is what `asked_strength` asks for, from a fit t
    under `strength`.

    With ℓ = log λ and F the curvature of the likelihood held, dt/dℓ = −H⁻¹λPt and dγ/dℓ = tr(A²) − tr(A): the step is
    log(asked/λ)/(1 − d log asked/dℓ). Repeating `asked_strength` alone would come nearer by a constant factor a fit.
    """
    known = pairs.rank - share.left
    asked = jnp.log(asked_strength(pairs, t, known, config) / strength)
    size, weight = matmul(pairs.penalty, t**2), config.prior_axes
    size_slope = -2.0 * matmul(pairs.penalty, t * share.pull) / (size + weight / expected_strength(pairs))
    known_slope = (share.left_twice - share.left) / (jnp.maximum(known, 0.0) + weight)
    change = asked / (1.0 - jnp.clip(known_slope - size_slope, -1.0, 0.9))
    change = jnp.clip(change, asked - LEAP, asked + LEAP)
    found = jnp.clip(strength * jnp.exp(change), *bounds(pairs, config))
    moved = jnp.log(found / strength)
    # Further away the first-order change of t is not reliable.
    return found, t - jnp.where(jnp.abs(moved) < LEAP, moved, 0.0) * share.pull


def bounds(pairs: Prior, config: RobustFit) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The weakest and the strongest prior there is: margins of `widest_margin` and of `LEAST_MARGIN`."""
    rank = jnp.maximum(pairs.rank, 1)
    return rank / config.widest_margin**2, rank / LEAST_MARGIN**2


def at_bound(pairs: Prior, strength: Float[Array, ""], config: RobustFit) -> Bool[Array, ""]:
    """Whether the pairs ask for the weakest prior there is: a reward (nearly) separates their labels."""
    return strength <= 1.001 * jnp.maximum(pairs.rank, 1) / config.widest_margin**2
