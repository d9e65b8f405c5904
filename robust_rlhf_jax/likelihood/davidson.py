"""Ties: Davidson's model of three outcomes, whose decided pairs follow Bradley–Terry.

P(first, tie, second) ∝ (e^{m/2}, ν, e^{−m/2}) for a margin m = θᵀx. Among decided pairs P(first) = σ(m) whatever ν is,
so that θ is fitted to them as if there were no ties. What it forgoes: ties add ¼d²(1 − s)/s to the Fisher information
of a margin, (s² − d²)/4s, where s = P(first) + P(second) and d their difference; 3 % for s = .78, d = .3.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from robust_rlhf_jax.kernels.linalg import matmul

# log ν is sought in [−30, 30]: halved so often that float64 has no digit left.
WIDEST, HALVINGS = 30.0, 60


def outcome_log_chances(margins: Float[Array, "*b"], tie: Float[Array, "*#b"]) -> Float[Array, "*b 3"]:
    """log P(first), log P(tie), log P(second) of margins θᵀx at ν = `tie`; no ties where ν = 0.

    **Source:** Davidson 1970, *On extending the Bradley–Terry model to accommodate ties*.

    **Example:**

    >>> import jax.numpy as jnp
    >>> from robust_rlhf_jax.likelihood import outcome_log_chances
    >>> [round(float(p), 3) for p in jnp.exp(outcome_log_chances(jnp.zeros(()), jnp.float32(1.0)))]
    [0.333, 0.333, 0.333]
    """
    half = 0.5 * jnp.asarray(margins)
    middle = jnp.broadcast_to(jnp.log(jnp.asarray(tie, half.dtype)), half.shape)
    return jax.nn.log_softmax(jnp.stack([half, middle, -half], axis=-1), axis=-1)


def tie_chances(margins: Float[Array, "*b"], tie: Float[Array, "*#b"]) -> Float[Array, "*b"]:
    """P(tie) of `outcome_log_chances`.

    **Example:**

    >>> import jax.numpy as jnp
    >>> from robust_rlhf_jax.likelihood import tie_chances
    >>> round(float(tie_chances(jnp.zeros(()), jnp.float32(2.0))), 3)  # ν/(2 + ν)
    0.5
    """
    return jnp.exp(outcome_log_chances(margins, tie)[..., 1])


def tie_strength(
    margins: Float[Array, "E N"],
    tied: Bool[Array, " N"],
    weights: Float[Array, " N"],
    belief: Float[Array, " E"] | None = None,
) -> Float[Array, ""]:
    """The ν under which as many ties are expected as there are: Σ_n w_n (tied_n − Σ_e p_e P(tie | m_en)) = 0.

    For one reward (E = 1) the maximum of the likelihood over ν. 0 without ties. Jit- and vmap-able.

    **Arguments:** `margins` of E rewards; `weights` of the pairs; `belief` p_e, None for equal ones.

    **Example:** Of options that are equally good a third ties.

    >>> import jax.numpy as jnp
    >>> from robust_rlhf_jax.likelihood import tie_strength
    >>> round(float(tie_strength(jnp.zeros((1, 3)), jnp.array([True, False, False]), jnp.ones(3))), 3)
    1.0
    """
    belief = jnp.full(len(margins), 1.0 / len(margins), margins.dtype) if belief is None else belief
    seen = matmul(weights, tied.astype(margins.dtype))

    def halve(_, bounds):
        low, high = bounds
        middle = 0.5 * (low + high)
        expected = matmul(belief, matmul(tie_chances(margins, jnp.exp(middle)), weights))
        few = expected < seen
        return jnp.where(few, middle, low), jnp.where(few, high, middle)

    end = jnp.asarray(WIDEST, margins.dtype)
    low, high = jax.lax.fori_loop(0, HALVINGS, halve, (-end, end))
    return jnp.where(seen > 0, jnp.exp(0.5 * (low + high)), 0.0)
