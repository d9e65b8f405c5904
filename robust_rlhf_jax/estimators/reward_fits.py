"""Ways to estimate a reward from labelled differences, all called alike: what rivals and attacks are run against."""

import jax.numpy as jnp

from .confident_learning import confident_learning
from .label_noise import cdpo, rdpo
from .r3m import r3m
from .redescending import redescending
from .reward import robust_reward
from .reward_protocol import RewardEstimator, RewardFit, surprise
from .sever import sever
from .trimmed_mle import trimmed_mle


def maximum_likelihood(x, labels, epsilon, *, radius) -> RewardFit:
    """Plain maximum likelihood on the ball; ε is not used."""
    fit = trimmed_mle(x, labels, jnp.zeros((), x.dtype), radius=radius, robust_start=False)
    return RewardFit(fit.theta, fit.weights, surprise(fit.theta, x, labels), fit.status)


def trimmed(x, labels, epsilon, *, radius) -> RewardFit:
    """`trimmed_mle` alone (paper: Algorithm 2)."""
    fit = trimmed_mle(x, labels, epsilon, radius=radius)
    return RewardFit(fit.theta, fit.weights, surprise(fit.theta, x, labels), fit.status)


def filtered(x, labels, epsilon, *, radius) -> RewardFit:
    """`robust_reward`: the filter and trimming of Algorithm 1, all rows used for every stage.

    A pair that the filter removed is more suspicious than any other, by how far out it lies.
    """
    found = robust_reward(x, x, labels, epsilon, radius=radius)
    # Whitened rows of clean data have squared length ~ 1; labels at worst cost the largest surprise of all.
    loss = surprise(found.fit.theta, x, labels)
    # Measured on random MDPs (ε = .1, .2; planted pairs, confident and random flips): without the removal, or with the
    # surprise of an untrimmed refit, average precision is nowhere better by more than .03, and worse by up to .17.
    removed = 1.0 - found.survivors
    return RewardFit(
        found.fit.theta, found.fit.weights, loss + removed * (jnp.max(loss) + found.suspicion), found.status
    )


REWARD_ESTIMATORS: dict[str, RewardEstimator] = {
    "maximum_likelihood": maximum_likelihood,
    "trimmed": trimmed,
    "filtered": filtered,
    "r3m": r3m,
    "cdpo": cdpo,
    "rdpo": rdpo,
    "sever": sever,
    "redescending": redescending,
    "confident_learning": confident_learning,
}
