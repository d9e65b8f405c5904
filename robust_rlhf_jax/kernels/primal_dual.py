"""The game behind offline planning: its Lagrangian's gradients, from moments or sample by sample (paper: Algorithm 7).

L(β, π; w) = Σ_h⟨θ_h, R_hᵀβ_h⟩ + Σ_h⟨w_h, Φᵀq_h − Λ_hβ_h⟩ with q_1 = π_1ρ and
q_{h+1}(s',a') = π_{h+1}(a'|s')·μ_h(s')ᵀΛ_hβ_h, maximised over β and π, minimised over w. R_h = E[φ_h φ^r_hᵀ]: Λ_h
where the reward is linear in the transition features.
"""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from .linalg import einsum, matmul


class GameMoments(NamedTuple):
    """What the gradients need of the data, as weighted means; either gradient may have weights of its own.

    `reward` [H, d, p]: R_h, `second` [H, d, d]: Λ_h, `landing` [H, S, d]: E[1(s_{h+1} = s) φ_h], for ∇β.
    `flow_second` [H, d, d]: Λ_h, `arriving` [H, S, d]: row h is E[1(s_h = s) φ_{h−1}] and row 1 is 0, `initial` [S]:
    the distribution of s_1, for ∇w.
    """

    reward: Float[Array, "H d p"]
    second: Float[Array, "H d d"]
    landing: Float[Array, "H S d"]
    flow_second: Float[Array, "H d d"]
    arriving: Float[Array, "H S d"]
    initial: Float[Array, " S"]


class PolicyTables(NamedTuple):
    """Per distinct state, never per sample and action.

    `policy` [H, S, A]; `value` [H, S]: v_h(s) = Σ_a π_h(a|s)φ(s,a)ᵀw_h; `feature` [H, S, d]: Σ_a π_h(a|s)φ(s,a).
    """

    policy: Float[Array, "H S A"]
    value: Float[Array, "H S"]
    feature: Float[Array, "H S d"]


def softmax_policy(table: Float[Array, "S A d"], logits: Float[Array, "H d"]) -> Float[Array, "H S A"]:
    """π_h(a|s) ∝ exp(φ(s,a)ᵀlogits_h)."""
    return jax.nn.softmax(einsum("sad,hd->hsa", table, logits), axis=-1)


def policy_tables(
    table: Float[Array, "S A d"], logits: Float[Array, "H d"], w: Float[Array, "H d"]
) -> PolicyTables:
    """What the softmax policy of `logits` does in every state, and what w says it is worth."""
    policy = softmax_policy(table, logits)
    feature = einsum("hsa,sad->hsd", policy, table)
    return PolicyTables(policy, einsum("hsd,hd->hs", feature, w), feature)


def following_values(value: Float[Array, "H S"]) -> Float[Array, "H S"]:
    """v_{h+1}(s): zero after the last step."""
    return jnp.concatenate([value[1:], jnp.zeros_like(value[:1])])


def ascent_gradient(
    moments: GameMoments, theta: Float[Array, "H p"], w: Float[Array, "H d"], value: Float[Array, "H S"]
) -> Float[Array, "H d"]:
    """∇β_h = R_hθ_h + E[φ_h v_{h+1}(s_{h+1})] − Λ_hw_h, without the middle term at h = H."""
    return (
        einsum("hdp,hp->hd", moments.reward, theta)
        + einsum("hsd,hs->hd", moments.landing, following_values(value))
        - einsum("hde,he->hd", moments.second, w)
    )


def descent_gradient(
    moments: GameMoments, beta: Float[Array, "H d"], feature: Float[Array, "H S d"]
) -> Float[Array, "H d"]:
    """∇w_h = Φᵀq_h − Λ_hβ_h: what flows into step h under π, less what β says is there."""
    before = jnp.concatenate([jnp.zeros_like(beta[:1]), beta[:-1]])
    inflow = einsum("hsd,hd->hs", moments.arriving, before).at[0].add(moments.initial)
    return einsum("hs,hsd->hd", inflow, feature) - einsum("hde,he->hd", moments.flow_second, beta)


def ascent_rows(
    phi: Float[Array, "n d"],
    reward: Float[Array, " n"],
    following: Float[Array, " n"],
    w: Float[Array, " d"],
) -> Float[Array, "n d"]:
    """∇β_h of each sample, φ(r + v_{h+1}(s') − wᵀφ); `following`: v_{h+1}(s'), zero at h = H."""
    return phi * (reward + following - matmul(phi, w))[:, None]


def descent_rows(
    phi: Float[Array, "n d"],
    beta: Float[Array, " d"],
    arrived: Float[Array, "n d"],
    carried: Float[Array, " n"],
) -> Float[Array, "n d"]:
    """∇w_h of each sample, Σ_a π_h(a|s_h)φ(s_h,a)·⟨φ_{h−1}, β_{h−1}⟩ − φ_h⟨φ_h, β_h⟩.

    `arrived`: Σ_a π_h(a|s_h)φ(s_h,a); `carried`: ⟨φ_{h−1}, β_{h−1}⟩, one at h = 1.
    """
    return arrived * carried[:, None] - phi * matmul(phi, beta)[:, None]


def ascent_moments(
    phi: Float[Array, "n d"],
    reward_phi: Float[Array, "n p"],
    following: Int[Array, " n"],
    weights: Float[Array, " n"],
    n_states: int,
):
    """(R, Λ, E[1(s' = s)φ]) of one step under `weights` [n]."""
    chex.assert_rank([phi, reward_phi], 2)
    chex.assert_equal_shape_prefix([phi, reward_phi, following, weights], 1)
    weighted = phi * (weights / jnp.sum(weights))[:, None]
    landing = jnp.zeros((n_states, phi.shape[1]), phi.dtype).at[following].add(weighted)
    return matmul(weighted.T, reward_phi), matmul(weighted.T, phi), landing


def descent_moments(
    phi: Float[Array, "n d"],
    previous_phi: Float[Array, "n d"],
    states: Int[Array, " n"],
    flow: Float[Array, " n"],
    arrival: Float[Array, " n"],
    n_states: int,
):
    """(Λ_h under `flow` [n], E[1(s_h = s)φ_{h−1}] and the distribution of s_h under `arrival` [n]) of one step."""
    chex.assert_equal_shape([phi, previous_phi])
    chex.assert_equal_shape_prefix([phi, states, flow, arrival], 1)
    flow, share = flow / jnp.sum(flow), arrival / jnp.sum(arrival)
    arriving = jnp.zeros((n_states, phi.shape[1]), phi.dtype).at[states].add(previous_phi * share[:, None])
    occupied = jnp.zeros(n_states, phi.dtype).at[states].add(share)
    return matmul((phi * flow[:, None]).T, phi), arriving, occupied
