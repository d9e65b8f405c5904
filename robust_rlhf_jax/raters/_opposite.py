"""Which features a rater weighs the other way than the crowd does."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import log_ndtr

from .kinds import CERTAINTY


class Weights(NamedTuple):
    """For each of k features, the weight `own` [K, k] of each of K raters and its `error` [K, k], normal given the
    rater's labels; the crowd's `mean` [k], and the `spread` [k] of the weights of its members.
    """

    own: Float[np.ndarray, "K k"]
    error: Float[np.ndarray, "K k"]
    mean: Float[np.ndarray, " k"]
    spread: Float[np.ndarray, " k"]


def log_odds(weights: Weights) -> Float[np.ndarray, "K k"]:
    """log P(θ_kj and θ̄_j differ in sign) / P(they do not), given the labels of rater k; −∞ where θ̄_j is 0."""
    return _log_odds(weights.own, weights.error, weights.mean)


def weighs_opposite(weights: Weights) -> Bool[np.ndarray, "K k"]:
    """Whether rater k likelier than not weighs feature j the other way, and labels say so by `CERTAINTY` nats: so much
    higher are the log odds than those of a member of the crowd of whom no label is known.

    The second condition is for features in which the crowd is divided: many members are likelier than not there.
    """
    after = log_odds(weights)
    before = _log_odds(weights.mean, weights.spread, weights.mean)
    with np.errstate(invalid="ignore"):  # −∞ of both where the mean is 0
        return (after > 0) & (after - before > CERTAINTY)


def _log_odds(own, error, mean):
    with np.errstate(divide="ignore", invalid="ignore"):
        along = np.sign(mean) * own / error
    # Without an error, 0 has no other sign.
    along = np.where(np.isnan(along) | (mean == 0), np.inf, along)
    return log_ndtr(-along) - log_ndtr(along)
