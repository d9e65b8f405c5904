"""The two fits of a training fold: plain, and any entry of `rewards/registry.py`.

How many rows a fit sees at most: `held_out.py`.
"""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.preferences import group_numbers
from robust_rlhf_jax.rewards import Explanations
from robust_rlhf_jax.rewards.registry import Entry


class PlainFoldFit(NamedTuple):
    """A plain fit to one training fold."""

    theta: Float[Array, " k"]
    status: Int[Array, ""]


class RobustFoldFit(NamedTuple):
    """A robust fit to one training fold.

    `theta` [k]; `status`; `share`: of the pairs that there is evidence against, or ε where the fit cannot say;
    `interval` [2]: what is certain and what could be; `weights` [n]: 0 for pairs that the fit left out, if it says;
    `explanations`: of an entry with evidence, else None.
    """

    theta: Float[Array, " k"]
    status: Int[Array, ""]
    share: Float[Array, ""]
    interval: Float[Array, " 2"]
    weights: Float[Array, " n"]
    explanations: Explanations | None


def numbers_at(groups: np.ndarray | None, rows: Int[np.ndarray, " n"]) -> Int[Array, " n"] | None:
    """Groups, or comparisons, of these rows as numbers from 0; None where there are none."""
    return None if groups is None else group_numbers(groups[rows], len(rows))


def fit_robust(
    entry: Entry,
    z: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    radius: Float[Array, ""],
    groups: Int[Array, " n"] | None = None,
    comparisons: Int[Array, " n"] | None = None,
) -> RobustFoldFit:
    """The fit of any entry of the table of estimators, with its evidence if it has any.

    `groups`, `comparisons`: of each pair as numbers from 0, which only an entry with evidence uses.
    """
    if entry.evidence is not None:
        found, _ = entry.evidence(z, labels, epsilon, groups, comparisons=comparisons)
        share = jnp.maximum(found.epsilon, found.interval[0])
        return RobustFoldFit(
            found.theta, found.status, share, found.interval, found.weights, found.explanations
        )
    return _estimated(entry, z, labels, epsilon, radius)


@eqx.filter_jit
def _estimated(
    entry: Entry,
    z: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    radius: Float[Array, ""],
) -> RobustFoldFit:
    fit = entry.estimate(z, labels, epsilon, radius=radius)
    interval = jnp.stack([jnp.zeros_like(epsilon), epsilon])
    return RobustFoldFit(fit.theta, fit.status, epsilon, interval, jnp.ones_like(labels), None)
