"""Pruning by confident learning (Northcutt, Jiang & Chuang 2021), then maximum likelihood on the rest."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from robust_rlhf_jax._iterate import worst_status
from robust_rlhf_jax.checks import check_labels
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.kernels.quantile import keep_top
from robust_rlhf_jax.likelihood.trimmed import plain_mle
from robust_rlhf_jax.rewards.protocol import Entry, RewardEstimate

FOLDS = 5


def confident_learning(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    *,
    radius: float | Float[Array, ""],
    folds: int = FOLDS,
) -> RewardEstimate:
    """Out-of-fold probabilities, the noise rates that they imply, the likeliest label errors pruned, a plain fit.

    Pair n belongs to fold n mod `folds`. Confident learning knows classes, Bradley–Terry only pairs that may be turned
    round: (x, o) and (−x, −o) are the same. Every second block of `folds` pairs is turned to class 1, the others to
    class 0, so that the classes are balanced whatever the order in which a file lists the two trajectories.
    `prune_by_noise_rate` says what goes. It estimates the share of wrong labels itself: ε is not used. Suspicion: one
    minus the out-of-fold probability of the label.
    """
    check_labels(labels)
    dtype = x.dtype
    return _confident_learning(x, labels.astype(dtype), jnp.asarray(radius, dtype), folds)


def prune_by_noise_rate(confidence: Float[Array, " n"], given: Bool[Array, " n"]) -> Float[Array, " n"]:
    """What is pruned of each pair, 0 or 1 (a share where pairs tie), by two-class confident learning.

    t_j: mean probability of class j over pairs labelled j. A pair counts for class j if p_j ≥ t_j (the likelier class
    if both do). Of the pairs labelled i as many are pruned as the share of those counted for the other class says, the
    least probable first; never one whose own label is the likelier.

    **Arguments:** `confidence`: out-of-sample probability of the label given; `given`: whether it is class 1.
    """
    chance = jnp.stack(
        [jnp.where(given, 1.0 - confidence, confidence), jnp.where(given, confidence, 1.0 - confidence)]
    )
    labelled = jnp.stack([~given, given])
    threshold = jnp.sum(chance * labelled, axis=1) / jnp.maximum(jnp.sum(labelled, axis=1), 1)
    confident = chance >= threshold[:, None] - 1e-6  # rounding of a mean of equal numbers
    likelier = jnp.stack([chance[0] >= chance[1], chance[1] > chance[0]])
    counted = confident & (~confident[::-1] | likelier)

    def pruned(own, right, wrong):
        counts = jnp.maximum(jnp.sum(own & right), 1), jnp.sum(own & wrong)
        number = jnp.round(jnp.sum(own) * (counts[1] / (counts[0] + counts[1])))
        capacity = own.astype(confidence.dtype)
        # No pair of the other class may be taken: those have no capacity.
        return keep_top(-confidence, capacity, number.astype(confidence.dtype))

    share = pruned(labelled[0], counted[0], counted[1]) + pruned(labelled[1], counted[1], counted[0])
    return jnp.where(confidence < 0.5, share, 0.0)


def out_of_fold_confidence(
    x: Float[Array, "n k"], labels: Float[Array, " n"], radius: Float[Array, ""], folds: int
) -> tuple[Float[Array, " n"], Array]:
    """(probability [n] of each label under the fit to the other folds, the worst status of the fits)."""
    fold_of = jnp.arange(len(x)) % folds

    def fit(fold):
        weights = (fold_of != fold).astype(x.dtype)
        found = plain_mle(x, labels, weights, radius=radius)
        return found.theta, found.status

    theta, status = jax.lax.map(fit, jnp.arange(folds))
    margins = labels * jnp.take_along_axis(matmul(x, theta.T), fold_of[:, None], axis=1)[:, 0]
    return jax.nn.sigmoid(margins), worst_status(*status)


@eqx.filter_jit
def _confident_learning(
    x: Float[Array, "n k"], labels: Float[Array, " n"], radius: Float[Array, ""], folds: int
) -> RewardEstimate:
    confidence, status = out_of_fold_confidence(x, labels, radius, folds)
    given = (jnp.arange(len(x)) // folds) % 2 == 1
    weights = 1.0 - prune_by_noise_rate(confidence, given)
    fit = plain_mle(x, labels, weights, radius=radius)
    return RewardEstimate(fit.theta, weights, 1.0 - confidence, worst_status(status, fit.status))


ENTRIES = [
    Entry(
        confident_learning,
        "confident learning",
        "#7b1e5b",
        "likely label errors pruned (Northcutt et al. 2021); ε is not used",
        uses_epsilon=False,
        plain_at_zero=False,
        period=2 * FOLDS,
    )
]
