"""Robust preference optimisation of Cao et al., for a linear reward: how likely each label is right, by EM."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from robust_rlhf_jax._iterate import worst_status
from robust_rlhf_jax.checks import check_labels
from robust_rlhf_jax.likelihood.margin_fit import fit_margin_loss, margin_problem
from robust_rlhf_jax.likelihood.margin_losses import TiltedLogistic
from robust_rlhf_jax.rewards.protocol import Entry, RewardEstimate, surprise

# Rounds of EM, and the share of right labels that it begins with.
ROUNDS, FIRST = 40, 0.9


def rpo(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    *,
    radius: float | Float[Array, ""],
) -> RewardEstimate:
    """EM for P(o_n) = ησ(m_n) + (1 − η)σ(−m_n), a share 1 − η of labels flipped at random (RPO: Cao et al. 2025).

    w_n = ησ(m_n)/P(o_n), then θ = argmin Σ w_nℓ(m_n) + (1 − w_n)ℓ(−m_n) on the ball and η = mean w. ε is not used.
    `weights`: w_n, the chance that the label is right. Suspicion: the label's surprise.
    """
    check_labels(labels)
    return _rpo(x, labels.astype(x.dtype), jnp.asarray(radius, x.dtype))


@eqx.filter_jit
def _rpo(x: Float[Array, "n k"], labels: Float[Array, " n"], radius: Float[Array, ""]) -> RewardEstimate:
    problem = margin_problem(TiltedLogistic(jnp.zeros_like(labels)), x, labels, radius)
    first = fit_margin_loss(problem)

    def round_of(state, _):
        theta, margins, share = state
        right = jax.nn.sigmoid(margins + jnp.log(share) - jnp.log1p(-share))
        # ℓ(−m) = ℓ(m) + m.
        given = (TiltedLogistic(1.0 - right), theta)
        fit = fit_margin_loss(eqx.tree_at(lambda p: (p.loss, p.start), problem, given))
        return (fit.theta, fit.margins, jnp.clip(jnp.mean(right), 0.5, 1.0 - 1e-6)), (right, fit.status)

    start = (first.theta, first.margins, jnp.asarray(FIRST, x.dtype))
    (theta, _, _), (right, statuses) = jax.lax.scan(round_of, start, length=ROUNDS)
    status = worst_status(first.status, statuses[-1])
    return RewardEstimate(theta, right[-1], surprise(theta, x, labels), status)


ENTRIES = [
    Entry(
        rpo,
        "RPO, by EM",
        None,
        "flips at a rate that EM finds (Cao et al. 2025); ε is not used",
        uses_epsilon=False,
        plain_at_zero=False,
        by_surprise=True,
    )
]
