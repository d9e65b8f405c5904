"""What every algorithm returns."""

import equinox as eqx
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.mdp import Policy


class Solution(eqx.Module):
    """A policy and how it came about; arrays only, so that it vmaps.

    `policy`: [H, S, A] or a `MixturePolicy`; `theta` [H, p]: the reward estimate; `value`: the oracle's estimate of
    V(θ); `status`: a `Status` code, the most serious of all stages; `diagnostics`: arrays by name, listed by each
    algorithm.
    """

    policy: Policy
    theta: Float[Array, "H p"]
    value: Float[Array, ""]
    status: Int[Array, ""]
    diagnostics: dict[str, Array]
