"""Second moments of whole trajectories' features, exactly: what coverage is made of."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from robust_rlhf_jax.kernels.linalg import einsum, matmul
from robust_rlhf_jax.mdp import LinearMDP, MixturePolicy, Policy, SoftmaxMixture, expected_features, occupancy


@jax.jit
def feature_second_moment(mdp: LinearMDP, policy: Policy) -> Float[Array, "H p H p"]:
    """E_π[φ(τ)φ(τ)ᵀ] over the reward features, block (h, h') being E[φ_h φ_h'ᵀ].

    Within a step Σ_{s,a} q_h(s,a)φφᵀ. Across steps the matrix-valued occupancy M_h(s') = E[φ_h 1{s_h' = s'}] moves on
    like a distribution, M ↦ (Σ_s M(s)φ̄_h'(s)ᵀ)μ_h', φ̄ the mean feature under π: cost H²·S·p·d, no transition matrix.
    """
    if isinstance(policy, MixturePolicy | SoftmaxMixture):
        return policy.mean_over(lambda p: feature_second_moment(mdp, p))
    table, steps = mdp.reward_table, jnp.arange(mdp.horizon)
    within = einsum("hsa,sap,saq->hpq", occupancy(mdp, policy), table, table)
    leaving = einsum("hsa,sap,sad->hpd", occupancy(mdp, policy), table, mdp.features)

    def forward(past, step):  # past [H, p, S]: M_h for the steps h so far, zero for the others
        h, measure, chances = step
        mean_reward = einsum("sa,sap->sp", chances, table)
        mean_feature = einsum("sa,sad->sd", chances, mdp.features)
        across = matmul(past, mean_reward)
        moved = matmul(past, mean_feature).at[h].set(leaving[h])
        return matmul(moved, measure), across.at[h].set(0.5 * within[h])

    first = jnp.zeros((mdp.horizon, table.shape[-1], mdp.n_states), table.dtype)
    _, half = jax.lax.scan(forward, first, (steps, mdp.transition_measures, policy))
    half = half.transpose(1, 2, 0, 3)  # from [later, earlier, p, q] to [earlier, p, later, q]
    return half + half.transpose(2, 3, 0, 1)


def difference_second_moment(mdp: LinearMDP, policy0: Policy, policy1: Policy) -> Float[Array, "H p H p"]:
    """E[xxᵀ] of x = φ(τ¹) − φ(τ⁰), τ⁰ ~ π₀ and τ¹ ~ π₁ independent (paper: Σ^diff, eq. diff-cov-matrix).

    Σ₀ + Σ₁ − m₀m₁ᵀ − m₁m₀ᵀ with Σ_i = E[φ(τ)φ(τ)ᵀ] and m_i = E[φ(τ)] under π_i.
    """
    mean0, mean1 = expected_features(mdp, policy0), expected_features(mdp, policy1)
    cross = einsum("hp,kq->hpkq", mean0, mean1)
    both = feature_second_moment(mdp, policy0) + feature_second_moment(mdp, policy1)
    return both - cross - cross.transpose(2, 3, 0, 1)
