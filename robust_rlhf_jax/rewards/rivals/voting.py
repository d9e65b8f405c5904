"""Cleaning by votes, for a linear reward: labels that every head of a bootstrap contradicts are left out."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from robust_rlhf_jax._iterate import worst_status
from robust_rlhf_jax.checks import check_labels
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.likelihood.trimmed import plain_mle
from robust_rlhf_jax.rewards.protocol import Entry, RewardEstimate

# As many heads as the benchmark has reward models.
HEADS, GROUPS, SEED = 6, 10, 0
RULES = ("all", "majority")


def voting(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    *,
    radius: float | Float[Array, ""],
    rule: str = "all",
    heads: int = HEADS,
) -> RewardEstimate:
    """Plain fits to bootstrap samples vote on each label, the contradicted ones go, a plain fit to the rest.

    PrefCleanBench's VoteAll and VoteMaj, removal (Yeh & Li 2025): a pair goes if all heads, or by `rule="majority"`
    more than half of them, have o_nθᵀx_n ≤ 0. Its voters are six foreign reward models; a file alone has only its own
    heads: each is fitted to ten groups drawn with replacement from ten (pair n belongs to group n mod 10, the draw is
    fixed). They learn from the labels on which they vote, and what stays agrees with them: θ comes out long, and its
    chances too sure. A head that draws no pair has them all, and where no pair would stay all do. ε is not used.
    Suspicion: the mean over heads of the label's surprise.

    **Raises:** ValueError for another rule, or fewer than two heads.
    """
    check_labels(labels)
    if rule not in RULES:
        raise ValueError(f'rule={rule!r} is unknown: it is "all" or "majority".')
    if heads < 2:
        raise ValueError(f"heads={heads} must be at least 2: they vote.")
    dtype = x.dtype
    return _voting(x, labels.astype(dtype), jnp.asarray(radius, dtype), rule, heads)


def drawn_groups(heads: int) -> Float[np.ndarray, "heads groups"]:
    """How often each head has each group, over its most frequent one."""
    counts = np.random.default_rng(SEED).multinomial(GROUPS, np.full(GROUPS, 1 / GROUPS), size=heads)
    return counts / counts.max(axis=1, keepdims=True)


@eqx.filter_jit
def _voting(
    x: Float[Array, "n k"], labels: Float[Array, " n"], radius: Float[Array, ""], rule: str, heads: int
) -> RewardEstimate:
    def fit(weights):
        found = plain_mle(x, labels, weights, radius=radius)
        return found.theta, found.status

    drawn = jnp.asarray(drawn_groups(heads), x.dtype)[:, jnp.arange(len(x)) % GROUPS]
    thetas, statuses = jax.lax.map(fit, jnp.where(jnp.any(drawn > 0, axis=1, keepdims=True), drawn, 1.0))
    margins = labels[:, None] * matmul(x, thetas.T)
    against = jnp.sum(margins <= 0, axis=1)
    gone = against == heads if rule == "all" else against > heads / 2
    weights = 1.0 - (gone & ~jnp.all(gone)).astype(x.dtype)
    theta, status = fit(weights)
    suspicion = -jnp.mean(jax.nn.log_sigmoid(margins), axis=1)
    return RewardEstimate(theta, weights, suspicion, worst_status(status, *statuses))


ENTRIES = [
    Entry(
        voting,
        "voting",
        None,
        "labels that all bootstrapped fits contradict left out (PrefCleanBench: Yeh & Li 2025); ε is not used",
        uses_epsilon=False,
        plain_at_zero=False,
        period=GROUPS,
    )
]
