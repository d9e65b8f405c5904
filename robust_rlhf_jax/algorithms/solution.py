"""What every algorithm returns. The codes of its `status`: `_iterate.py`."""

import equinox as eqx
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.mdp import Policy


class Solution(eqx.Module):
    """A policy and how it came about; arrays only, so that it vmaps.

    `policy`: [H, S, A] or a `MixturePolicy`; `theta` [H, p]: the reward estimate; `value`: the oracle's estimate of
    V(θ); `status`: a `Status` code, the most serious of all stages; `diagnostics`: arrays by name, listed by each
    algorithm.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import Status, algorithms, sample_preferences, worlds
    >>> data = sample_preferences(jax.random.key(0), worlds.chain_mdp(), 200)
    >>> found = algorithms.standard(jax.random.key(1), data, 0.0)
    >>> found.policy.shape, found.theta.shape, Status(int(found.status)).name
    ((10, 20, 2), (10, 10), 'CONVERGED')
    """

    policy: Policy
    theta: Float[Array, "H p"]
    value: Float[Array, ""]
    status: Int[Array, ""]
    diagnostics: dict[str, Array]
