"""`RewardFit`: a robust reward in arrays, so that it vmaps; `model.py` says it to a person."""

from typing import NamedTuple

from jaxtyping import Array, Float, Int

from .explanations import Explanations


class RewardFit(NamedTuple):
    """θ̂ [k] and how it came about, in arrays, so that it vmaps; see `RewardModel`.

    `undisputed` [N]: the chance that a pair is honest under the plausible explanation that suspects it most; `doubted`
    [r, k]: directions of θ, or rows of 0; `label_noise`: the chance that a label means nothing wherever it stands: the
    share found corrupt, at most ε/2; without corruption 0, or the share of slips.

    **Example:**

    >>> import jax.numpy as jnp
    >>> from robust_rlhf_jax import preferences, rewards
    >>> fit = rewards.fit_data(preferences.rail_pairs(), jnp.float32(0.1))
    >>> fit.theta.shape, int(fit.rank), float(fit.weights.min())
    ((4,), 4, 1.0)
    """

    theta: Float[Array, " k"]
    weights: Float[Array, " N"]
    undisputed: Float[Array, " N"]
    suspicion: Float[Array, " N"]
    epsilon: Float[Array, ""]
    interval: Float[Array, "2"]
    rank: Int[Array, ""]
    doubted: Float[Array, "r k"]
    label_noise: Float[Array, ""]
    explanations: Explanations
    status: Int[Array, ""]

    def probability(self, differences: Float[Array, "*b k"]) -> Float[Array, "*b"]:
        """P(the first option is preferred), given first less second; see `RewardModel.probability`."""
        return self.explanations.mean_probability(self.label_noise, differences)
