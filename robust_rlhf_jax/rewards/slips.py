"""Honest labels that are slips: how well a reward explains the labels if people sometimes err whatever they compare."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .coordinates import count_of

# Shares of labels that are slips, on trial: Wichmann & Hill 2001, *The psychometric function I*, take up to .06.
SHARES = (1 / 16, 1 / 32, 1 / 64)
# Factors of the margins on trial: a fit that knows of no slips is too cautious, one to the pairs that agree too sure.
FACTORS = tuple(2.0 ** (-0.5 * halvings) for halvings in range(-2, 6))


class Slips(NamedTuple):
    """`value`: log-likelihood of the labels in nats, less what the `share` of slips costs; `factor` of the margins that
    is likeliest then.
    """

    value: Float[Array, "*E"]
    share: Float[Array, "*E"]
    factor: Float[Array, "*E"]


def with_slips(
    margins: Float[Array, " N"], recurs: Float[Array, " N"], informative: Float[Array, " N"]
) -> Slips:
    """max over λ, κ of Σ log((1 − λ)σ(κm) + λ/2) − ½ log N: honest people toss a coin in a share λ of their labels.

    A share that all comparisons have is one more parameter, and costs what a cell's rate costs (`contaminated`).

    **Arguments:** `recurs` [N]: 1 where another pair compares the same options. Only there is a label taken for a slip:
    the others say what people answer otherwise, and no single row decides a reward.

    **Source:** the lapse rate of psychometrics (Wichmann & Hill 2001); Schwarz 1978 for its price.
    """
    shares = jnp.asarray(SHARES, margins.dtype)

    def explained(factor: Float[Array, ""]) -> Float[Array, " S"]:
        alone = jax.nn.log_sigmoid(factor * margins)
        chance = jax.nn.sigmoid(factor * margins)

        def at(share: Float[Array, ""]) -> Float[Array, ""]:
            likely = jnp.where(recurs > 0, jnp.log((1.0 - share) * chance + 0.5 * share), alone)
            return jnp.sum(jnp.where(informative > 0, likely, 0.0))

        return jax.lax.map(at, shares)

    factors = jnp.asarray(FACTORS, margins.dtype)
    values = jax.lax.map(explained, factors)
    factor, share = jnp.divmod(jnp.argmax(values), len(SHARES))
    return Slips(jnp.max(values) - 0.5 * jnp.log(count_of(informative)), shares[share], factors[factor])
