"""The robust reward, and the share of the pairs that may be corrupt where the plan relies on it."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from robust_rlhf_jax.preferences import Labelled
from robust_rlhf_jax.rewards import CEILING, RewardFit
from robust_rlhf_jax.rewards.front_door import fit_labelled


def reward_and_share(
    seen: Labelled, epsilon: Float[Array, ""] | None, gone: Float[Array, ""]
) -> tuple[RewardFit, Float[Array, ""]]:
    """(the fit, the share of the pairs on the table that may be corrupt): ε, or else the estimate; `gone`: the share
    that the table contradicts.
    """
    if epsilon is not None:
        remaining = jnp.maximum((epsilon - gone) / (1.0 - gone), 0.0)
        return fit_labelled(seen, remaining), remaining
    found = fit_labelled(seen, jnp.asarray(CEILING, seen.x.dtype))
    remaining = jnp.maximum(found.epsilon - gone, 0.0)
    # Without evidence of corruption no pair is disputed and no direction doubted, whatever the ceiling would allow.
    evidence = remaining > 0.5 / len(seen.labels)
    undisputed = jnp.where(evidence, found.undisputed, found.weights)
    return found._replace(undisputed=undisputed, doubted=jnp.where(evidence, found.doubted, 0.0)), remaining
