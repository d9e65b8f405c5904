"""The curvature of a likelihood of all pairs, from those of a sample."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from robust_rlhf_jax.kernels.lapack import cholesky, cholesky_solve, eigh
from robust_rlhf_jax.kernels.linalg import matmul, weighted_gram
from robust_rlhf_jax.kernels.logistic import label_variance

from ..coordinates import WIDE, UnitFreePairs
from ..fisher_products import PROBES, signs
from ..prior_strength import PriorShare

# A direction of which a sample shows less than this share of its second moment counts as not seen there.
UNSEEN = 0.05


class SampleCurvature(NamedTuple):
    """`rows` [m, r] of the sample, stretched so that the second moment of the `count` informative ones is I as that of
    all pairs is, but for what they do not show: `unseen` [r, r].

    Σ_n w_n f_n y_n y_nᵀ/N of all N informative pairs is then exact where w·f is the same for all, and near it
    elsewhere: only what w·f differs by is estimated from the sample.
    """

    rows: Float[Array, "m r"]
    unseen: Float[Array, "r r"]
    count: Float[Array, ""]

    def information(self, wf: Float[Array, " m"], mean: Float[Array, ""]) -> Float[Array, "r r"]:
        """Σ_n w_n f_n y_n y_nᵀ/N where the sample has `wf`, and all pairs on average `mean`."""
        return weighted_gram(self.rows, wf / self.count) + mean * self.unseen


@jax.jit
def sample_curvature(pairs: UnitFreePairs) -> SampleCurvature:
    """`SampleCurvature` of a sample in coordinates in which the second moment of all pairs is I on their span."""
    rows, count = pairs.rows, pairs.n_informative
    values, axes = eigh(weighted_gram(rows, pairs.informative / count))
    seen = values > UNSEEN
    root = jnp.where(seen, 1.0 / jnp.sqrt(jnp.where(seen, values, 1.0)), 0.0)
    live = jnp.diag((pairs.penalty > 0).astype(rows.dtype))
    return SampleCurvature(
        matmul(rows, matmul(axes * root, axes.T)), live - matmul(axes * seen, axes.T), count
    )


@jax.jit
def curvature_factor(
    sample: SampleCurvature,
    margins: Float[Array, " m"],
    weights: Float[Array, " m"],
    mean: Float[Array, ""],
    precision: Float[Array, " r"],
) -> Float[Array, "r r"]:
    """The lower Cholesky factor of Σ_n w_n f_n y_n y_nᵀ/N + diag(`precision`), from the sample's margins and weights;
    `mean`: of w·f over all pairs.
    """
    known = sample.information(weights * label_variance(margins), mean)
    # A step must stay finite along directions of which neither the sample nor the prior knows anything.
    least = 1e-3 * mean + 16 * jnp.finfo(known.dtype).eps
    return cholesky(known + jnp.diag(precision + least))


@jax.jit
def mean_variance(margins: Float[Array, " N"], weights: Float[Array, " N"], n: float) -> Float[Array, ""]:
    """Σ_n w_n P(1 − P)/n."""
    return jnp.sum(weights * label_variance(margins)) / n


@jax.jit
def prior_share(
    factor: Float[Array, "r r"], precision: Float[Array, " r"], t: Float[Array, " r"]
) -> PriorShare:
    """`PriorShare` of a fit t whose curvature LLᵀ, with the prior's λ·diag(penalty) = `precision`, is known per pair.

    Along all axes where they are few, else by random signs, as `fisher_products.prior_share`.
    """
    r, few = len(t), len(t) <= WIDE
    probes = (jnp.eye(r, dtype=factor.dtype) if few else signs(r, PROBES, factor.dtype)) * jnp.sqrt(precision)
    solved = cholesky_solve(factor, jnp.concatenate([probes, (precision * t)[None]]).T).T
    left, twice = (jnp.sum(part * solved[:-1]) for part in (probes, solved[:-1] * precision))
    count = 1 if few else PROBES
    return PriorShare(left / count, twice / count, solved[-1])
