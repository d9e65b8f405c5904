"""Least-squares value iteration, shared by the plain and the robust oracle."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from robust_rlhf_jax.kernels.linalg import einsum, matmul


def return_ranges(rewards: Float[Array, "H S A"]) -> tuple[Float[Array, " H"], Float[Array, " H"]]:
    """Lowest and highest reward that steps h…H can pay, for each h: the range that Q̂_h is clipped to.

    Tighter than ±(H−h+1)·r_max, and it scales with θ just as well.
    """
    lowest, highest = jnp.min(rewards, axis=(1, 2)), jnp.max(rewards, axis=(1, 2))
    return jnp.cumsum(lowest[::-1])[::-1], jnp.cumsum(highest[::-1])[::-1]


def backward_induction(
    regressions,
    fit,
    table: Float[Array, "S A d"],
    rewards: Float[Array, "H S A"],
    bonus: Float[Array, "H S A"],
) -> tuple[Float[Array, " S"], Float[Array, "H S A"]]:
    """For h = H…1: ŵ_h = fit(V̂_{h+1}), Q̂_h = clip(r_h + φᵀŵ_h − Γ_h), greedy π̂_h, V̂_h = max_a Q̂_h.

    The reward φᵀθ_h is known given θ, so only V̂_{h+1}(s') is regressed on φ.

    **Arguments:** `regressions`: a pytree with leading axis H, or 1 if all steps share one, as then may `bonus`;
    `fit(regression_h, V̂_{h+1} [S])` → ŵ_h [d].

    **Returns:** (V̂_1 [S], π̂ [H, S, A] one-hot).
    """
    low, high = return_ranges(rewards)
    bonus = jnp.broadcast_to(bonus, rewards.shape)
    shared = jax.tree.leaves(regressions)[0].shape[0] < len(rewards)
    only = jax.tree.map(lambda x: x[0], regressions) if shared else None

    def backward(next_value, step):
        own, reward, gamma, least, most = step
        regression = only if shared else own
        q = reward + matmul(table, fit(regression, next_value)) - gamma
        q = jnp.clip(q, least, most)
        policy = jax.nn.one_hot(jnp.argmax(q, axis=-1), q.shape[-1], dtype=q.dtype)
        return jnp.max(q, axis=-1), policy

    first = jnp.zeros(len(table), rewards.dtype)
    steps = (None if shared else regressions, rewards, bonus, low, high)
    return jax.lax.scan(backward, first, steps, reverse=True)


def rewards_from(table: Float[Array, "S A p"], theta: Float[Array, "H p"]) -> Float[Array, "H S A"]:
    """φ(s,a)ᵀθ_h."""
    return einsum("sap,hp->hsa", table, theta)
