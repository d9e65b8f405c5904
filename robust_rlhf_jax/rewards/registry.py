"""Ways to estimate a reward from labelled differences, all called alike: what rivals and attacks are run against."""

from typing import NamedTuple

import jax.numpy as jnp

from robust_rlhf_jax.likelihood.trimmed import trimmed_mle
from robust_rlhf_jax.rewards.rivals.confident_learning import confident_learning
from robust_rlhf_jax.rewards.rivals.label_noise import cdpo, rdpo
from robust_rlhf_jax.rewards.rivals.r3m import r3m
from robust_rlhf_jax.rewards.rivals.redescending import redescending
from robust_rlhf_jax.rewards.rivals.sever import sever

from .filter_and_trim import robust_reward
from .fit import fit_differences
from .planted_rows import excess_surprise, removal_is_telling
from .protocol import RewardEstimate, RewardEstimator, surprise

# Measured (benchmarks/detection.py): with the removed always first, honest far-out pairs bury the lies among labels;
# with surprise alone, planted pairs that θ̂ finds unsurprising are missed.
EMPHASIS = 5.0


def robust(x, labels, epsilon, *, radius) -> RewardEstimate:
    """`fit_differences`, which `fit_reward` is made of; its prior bounds θ, and `radius` is not used."""
    found = fit_differences(x, labels, epsilon)
    return RewardEstimate(found.theta, found.weights, found.suspicion, found.status)


def maximum_likelihood(x, labels, epsilon, *, radius) -> RewardEstimate:
    """Plain maximum likelihood on the ball; ε is not used."""
    fit = trimmed_mle(x, labels, jnp.zeros((), x.dtype), radius=radius, robust_start=False)
    return RewardEstimate(fit.theta, fit.weights, surprise(fit.theta, x, labels), fit.status)


def trimmed(x, labels, epsilon, *, radius) -> RewardEstimate:
    """`trimmed_mle` alone (paper: Algorithm 2)."""
    fit = trimmed_mle(x, labels, epsilon, radius=radius)
    return RewardEstimate(fit.theta, fit.weights, surprise(fit.theta, x, labels), fit.status)


def filtered(x, labels, epsilon, *, radius) -> RewardEstimate:
    """`robust_reward`: the filter and trimming of Algorithm 1, all rows used for every stage.

    Suspicion is the label's surprise; a pair that the filter removed counts `EMPHASIS` times as much where the
    removed pairs' labels are told apart from the rest's (`removal_is_telling`).
    """
    found = robust_reward(x, x, labels, epsilon, radius=radius)
    theta = found.fit.theta
    telling = removal_is_telling(excess_surprise(theta, x, labels), found.survivors)
    removed = jnp.where(telling, 1.0 - found.survivors, 0.0)
    suspicion = surprise(theta, x, labels) * (1.0 + (EMPHASIS - 1.0) * removed)
    return RewardEstimate(theta, found.fit.weights, suspicion, found.status)


class Entry(NamedTuple):
    """An estimator under its name. A rival also has a `label` and a `colour` in figures, and a line that says what it
    is: `robust_rlhf_jax.rivals` plans with it, sweeps run it and reports draw it without further ado.
    """

    estimate: RewardEstimator
    label: str = ""
    colour: str = ""
    line: str = ""

    @property
    def rival(self) -> bool:
        return bool(self.label)


DEFAULT = "fit_reward"
ESTIMATORS = {
    DEFAULT: Entry(robust),
    "maximum_likelihood": Entry(maximum_likelihood),
    "trimmed": Entry(trimmed),
    "filtered": Entry(filtered),
    "r3m": Entry(r3m, "R³M", "#e377a8", "sparse offsets of single labels (Bukharin et al. 2024)"),
    "cdpo": Entry(cdpo, "cDPO loss", "#17a398", "labels smoothed by ε (Mitchell 2023)"),
    "rdpo": Entry(
        rdpo, "rDPO loss", "#b5b800", "the likelihood debiased for flips (Chowdhury, Kini & Natarajan 2024)"
    ),
    "sever": Entry(sever, "Sever", "#4a2c1a", "pairs filtered by their gradients (Diakonikolas et al. 2019)"),
    "redescending": Entry(
        redescending,
        "density power",
        "#6fa8dc",
        "the density power divergence (Ghosh & Basu 2016); ε is not used",
    ),
    "confident_learning": Entry(
        confident_learning,
        "confident learning",
        "#7b1e5b",
        "likely label errors pruned (Northcutt et al. 2021); ε is not used",
    ),
}
REWARD_ESTIMATORS: dict[str, RewardEstimator] = {name: entry.estimate for name, entry in ESTIMATORS.items()}
