"""What every adversary shares: its signature, its budget, and the part of θ worth attacking."""

from typing import Protocol

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from robust_rlhf_jax.checks import check_epsilon
from robust_rlhf_jax.kernels.linalg import matmul, pseudo_inverse_root
from robust_rlhf_jax.mdp import LinearMDP
from robust_rlhf_jax.preferences import PreferenceData


class Attack(Protocol):
    """Sees all of the data and the MDP; changes exactly ⌊εN⌋ pairs. Jit- and vmap-able, ε traced."""

    def __call__(
        self, key: PRNGKeyArray, data: PreferenceData, epsilon: float | Float[Array, ""], mdp: LinearMDP
    ) -> PreferenceData: ...


def corruption_count(epsilon: float | Float[Array, ""], n_pairs: int) -> Int[Array, ""]:
    """⌊εN⌋ in the arithmetic of the decimal that was meant: ε = .29, N = 100 gives 29, not 28.

    **Raises:** ValueError for ε outside [0, ½).
    """
    check_epsilon(epsilon)
    product = jnp.asarray(epsilon, float) * n_pairs
    slack = jnp.minimum(2 * jnp.finfo(product.dtype).eps * product, 0.4)
    return jnp.floor(product + slack).astype(jnp.int32)


def largest(scores: Float[Array, " N"], count: Int[Array, ""]) -> Bool[Array, " N"]:
    """Mask of exactly `count` largest scores (ties by position)."""
    rank = jnp.zeros(scores.shape, jnp.int32).at[jnp.argsort(-scores)].set(jnp.arange(scores.shape[0]))
    return rank < count


def replace_rows(mask: Bool[Array, " N"], new, old):
    """Rows of `new` where the mask holds, of `old` elsewhere."""
    return jnp.where(mask.reshape((-1,) + (1,) * (old.ndim - 1)), new, old)


def identifiable_theta(mdp: LinearMDP) -> Float[Array, "H p"]:
    """θ★_h projected on the span of feature differences.

    What is left out adds the same reward to every (s,a): no comparison shows it and no policy depends on it.
    """
    rows = mdp.reward_table.reshape(-1, mdp.reward_table.shape[-1])
    centred = rows - jnp.mean(rows, axis=0)
    whitener, colourer, _ = pseudo_inverse_root(matmul(centred.T, centred) / rows.shape[0])
    return matmul(mdp.theta, matmul(whitener, colourer))
