"""An estimator as somebody outside adds it: `robust-rlhf benchmark --plug benchmarks/outsider/median_of_fits.py`."""

import jax
import jax.numpy as jnp

from robust_rlhf_jax.likelihood.trimmed import trimmed_mle
from robust_rlhf_jax.rewards.protocol import Entry, RewardEstimate, surprise

BLOCKS = 11


def median_of_fits(x, labels, epsilon, *, radius):
    """Maximum likelihood on eleven blocks of rows, and of each weight the median (after Minsker 2015)."""
    block = jnp.arange(len(x)) % BLOCKS

    def fit(number):
        weights = (block == number).astype(x.dtype)
        return trimmed_mle(x, labels, 0.0, radius=radius, weights=weights, robust_start=False)

    fits = jax.lax.map(fit, jnp.arange(BLOCKS))
    theta = jnp.median(fits.theta, axis=0)
    return RewardEstimate(theta, jnp.ones_like(labels), surprise(theta, x, labels), jnp.max(fits.status))


ENTRIES = [
    Entry(
        median_of_fits,
        "median of fits",
        None,
        "the median of eleven fits to blocks of rows; ε is not used",
        uses_epsilon=False,
        plain_at_zero=False,
    )
]
