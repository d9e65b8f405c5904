"""The reward fits that an audit can compare with plain maximum likelihood, by name."""

from typing import NamedTuple, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.kernels.quantile import keep_top
from robust_rlhf_jax.likelihood import trimmed_mle
from robust_rlhf_jax.rewards import Explanations, fit_differences, plain_fit
from robust_rlhf_jax.rewards.filter_and_trim import robust_reward
from robust_rlhf_jax.rewards.registry import DEFAULT as DEFAULT_FIT


class AuditFit(Protocol):
    """(z [n, k] whitened differences, labels [n], ε, radius) → (θ [k], status)."""

    def __call__(
        self, z: Float[Array, "n k"], labels: Float[Array, " n"], epsilon: Array, radius: Array
    ) -> tuple[Float[Array, " k"], Int[Array, ""]]: ...


class PlainFit(NamedTuple):
    """A plain fit to one training fold."""

    theta: Float[Array, " k"]
    status: Int[Array, ""]


class RobustFit(NamedTuple):
    """A robust fit to one training fold.

    `theta` [k]; `status`; `share`: of the pairs that there is evidence against, or ε where the fit cannot say;
    `interval` [2]: what is certain and what could be; `weights` [n]: 0 for pairs that the fit left out, if it says;
    `explanations`: of "fit_reward", else None.
    """

    theta: Float[Array, " k"]
    status: Int[Array, ""]
    share: Float[Array, ""]
    interval: Float[Array, " 2"]
    weights: Float[Array, " n"]
    explanations: Explanations | None


def filtered(z, labels, epsilon, radius):
    """`robust_reward`: filter the differences, then trim the likelihood of what is left."""
    estimate = robust_reward(z, z, labels, epsilon, radius=radius)
    return estimate.fit.theta, estimate.status


def filtered_then_trimmed(z, labels, epsilon, radius):
    """`filtered`, then one fit to the (1−ε)-fraction of all pairs that is most likely under it."""
    start, _ = filtered(z, labels, epsilon, radius)
    ones = jnp.ones_like(labels)
    kept = keep_top(labels * jnp.matmul(z, start, precision="highest"), ones, (1.0 - epsilon) * ones.sum())
    return _weighted(z, labels, kept, radius)


def trimmed(z, labels, epsilon, radius):
    """`trimmed_mle` (Algorithm 2) from 0 and from the row-normalised fit; the better objective wins."""
    fit = trimmed_mle(z, labels, epsilon, radius=radius)
    return fit.theta, fit.status


def trimmed_from_row_normalised(z, labels, epsilon, radius):
    """`trimmed_mle` from the row-normalised fit alone."""
    start, _ = row_normalised(z, labels, epsilon, radius)
    fit = trimmed_mle(z, labels, epsilon, radius=radius, starts=start[None], robust_start=False)
    return fit.theta, fit.status


def row_normalised(z, labels, epsilon, radius):
    """Rows weighted by 1/‖z‖: bounded influence (Künsch, Stefanski & Carroll 1989); ε is not used."""
    length = jnp.linalg.norm(z, axis=1)
    length = jnp.where(length > 0, length, jnp.inf)  # a row of zeros says nothing about θ
    return _weighted(z, labels, jnp.min(length) / length, radius)


def low_leverage(z, labels, epsilon, radius):
    """Maximum likelihood without the 2ε-fraction of largest ‖z‖: hard Mallows weights (Carroll & Pederson 1993)."""
    ones = jnp.ones_like(labels)
    kept = keep_top(-jnp.linalg.norm(z, axis=1), ones, (1.0 - 2.0 * epsilon) * ones.sum())
    return _weighted(z, labels, kept, radius)


def _weighted(z, labels, weights, radius):
    """Maximum likelihood with these weights in [0, 1]: nothing is trimmed at ε = 0."""
    fit = trimmed_mle(z, labels, 0.0, radius=radius, weights=weights, robust_start=False)
    return fit.theta, fit.status


OTHER_FITS: dict[str, AuditFit] = {
    "filtered": filtered,
    "filtered_then_trimmed": filtered_then_trimmed,
    "trimmed": trimmed,
    "trimmed_from_row_normalised": trimmed_from_row_normalised,
    "row_normalised": row_normalised,
    "low_leverage": low_leverage,
}
AUDIT_FITS = (DEFAULT_FIT, *OTHER_FITS)


@jax.jit
def fit_plain(z, labels, weights, radius) -> PlainFit:
    """`fit_reward` at ε = 0 on the rows of weight 1; `radius` is not used."""
    return PlainFit(*plain_fit(z, labels, weights))


@eqx.filter_jit
def fit_robust(
    estimator: str,
    z: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Array,
    radius: Array,
    groups: Int[Array, " n"] | None = None,
) -> RobustFit:
    """`fit_differences` for "fit_reward", else the fit that `OTHER_FITS` has under the name `estimator`.

    `groups`: the rater of each pair as a number from 0, which only "fit_reward" uses.
    """
    if estimator == DEFAULT_FIT:
        found = fit_differences(z, labels, epsilon, groups)
        share = jnp.maximum(found.epsilon, found.interval[0])
        return RobustFit(found.theta, found.status, share, found.interval, found.weights, found.explanations)
    theta, status = OTHER_FITS[estimator](z, labels, epsilon, radius)
    return RobustFit(
        theta, status, epsilon, jnp.stack([jnp.zeros_like(epsilon), epsilon]), jnp.ones_like(labels), None
    )
