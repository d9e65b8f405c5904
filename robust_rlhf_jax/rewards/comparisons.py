"""Labels of the same two options: which pairs they are, and how much better a fit explains those that it has seen."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import betaln
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.kernels.divisors import positive_or_one
from robust_rlhf_jax.kernels.logistic import label_variance

from .posterior_fit import LEAST_LEFT, missed


class Comparisons(NamedTuple):
    """Which two options each pair compares: `number` [N], from 0 to N − 1; `informative` [N] as in `UnitFreePairs`."""

    number: Int[Array, " N"]
    informative: Float[Array, " N"]

    def sums(self, values: Float[Array, " N"]) -> Float[Array, " N"]:
        """The sum of the values of each comparison."""
        return jax.ops.segment_sum(self.informative * values, self.number, len(values))

    def alike(self, values: Float[Array, " N"]) -> Float[Array, " N"]:
        """The value of each comparison, whose pairs have the same: unlike a mean, not rounded."""
        return jax.ops.segment_max(self.informative * values, self.number, len(values))

    def sizes(self) -> Float[Array, " N"]:
        """How many pairs make each comparison."""
        return self.sums(jnp.ones_like(self.informative))


def more_seen(
    seen: Float[Array, ""],
    margins: Float[Array, " N"],
    weights: Float[Array, " N"],
    leverage: Float[Array, " N"],
    comparisons: Comparisons | None,
) -> Float[Array, ""]:
    """Nats by which a fit explains what it has seen even better if it has seen whole comparisons, beside `seen`."""
    if comparisons is None:
        return jnp.zeros_like(seen)
    return jnp.maximum(optimism_of_comparisons(margins, weights, leverage, comparisons) - seen, 0.0)


def optimism_of_comparisons(
    margins: Float[Array, " N"],
    weights: Float[Array, " N"],
    leverage: Float[Array, " N"],
    comparisons: Comparisons,
) -> Float[Array, ""]:
    """`optimism` where all labels of one comparison are left out at once: nats by which a fit explains the comparisons
    that it counts better than it would, had it not seen each.

    One Newton step of leaving comparison c out of the fit: its margin falls by q_c s_c/(1 − q_c v_c), where q_c =
    y_cᵀH⁻¹y_c, and its labels have the score s_c = Σ w_n r_n and the information v_c = Σ w_n P(1 − P). A reward with
    nearly as many features as there are comparisons fits whatever people say of each; if one label is left out at a
    time, the other labels of the comparison still tell it. A comparison that recurs loses no more than if every number
    of contradicting labels were equally likely: so much is known of one that nothing predicts.

    **Arguments:** `leverage` [N]: w_n y_nᵀH⁻¹y_n.

    **Source:** approximate leave-one-out as in `optimism`, of the groups of a cross-validation.
    """
    side = jnp.where(margins < 0, -1.0, 1.0)
    counted = comparisons.sums(weights)
    length = comparisons.sums(leverage) / positive_or_one(counted)
    score = comparisons.sums(weights * side * missed(margins))
    known = comparisons.sums(leverage * label_variance(margins))
    fall = length * score / jnp.maximum(1.0 - known, LEAST_LEFT)
    unseen = margins - side * fall[comparisons.number]
    told, untold = (comparisons.sums(weights * jax.nn.log_sigmoid(of)) for of in (margins, unseen))
    contradict = comparisons.sums(weights * (margins < 0))
    unpredicted = betaln(contradict + 1.0, counted - contradict + 1.0)
    most = jnp.where(comparisons.sizes() > 1, jnp.maximum(told - unpredicted, 0.0), jnp.inf)
    return jnp.sum(jnp.minimum(told - untold, most))
