"""The rewards that preferences leave possible, some of which may be lies: what a plan is guaranteed."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from robust_rlhf_jax.kernels.chi_square import chi_square_quantile
from robust_rlhf_jax.kernels.lapack import cholesky, lower_solve
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.kernels.units import typical_entries
from robust_rlhf_jax.likelihood.confidence import Ellipsoid, ellipsoid
from robust_rlhf_jax.rewards import RewardFit, RobustFit
from robust_rlhf_jax.rewards.scarcity import secured

# The set's half-width in standard errors: a plan's value is one direction of θ, and this is its interval of 90 %. Where
# the data are merely noisy, the set that holds all of θ with that chance, wider by √(χ²_rank/χ²_1), forgoes more than
# it saves: on clean gridworlds of 48 directions it triples the gap of greedy plans. Where lies may hide, the set is
# that wide: an adversary chooses which direction the corrupted pairs show.
CONFIDENCE, STANDARD_ERRORS = 0.9, 1.645
# The set reaches this many times as far as the estimate where the data say nothing, and this much further.
REACH, LEAST_REACH = 3.0, 1.0


def lies_may_hide(found: RewardFit, epsilon: Float[Array, ""], gone: Float[Array, ""]) -> Bool[Array, ""]:
    """Whether the data show corruption, and the disputed pairs are fewer than the share ε of the pairs on the table
    that may be lies.
    """
    pairs = found.undisputed.size
    disputed = 1.0 - jnp.sum(found.undisputed) / (pairs * (1.0 - gone))
    evidence = found.epsilon > 0.5 / pairs
    return evidence & (epsilon - disputed > 0.5 / pairs)


class PossibleRewards(NamedTuple):
    """Θ in units of `sizes` [k]: `set`, and the Cholesky `factor` [k, k] of its shape; its half-width is `set.size`
    standard errors. With it the rewards `believed` [E, k], each of which explains the pairs for itself.
    """

    set: Ellipsoid
    sizes: Float[Array, " k"]
    factor: Float[Array, "k k"]
    believed: Float[Array, "E k"]

    def uncertainty(self, features: Float[Array, " k"]) -> Float[Array, ""]:
        """max over Θ of (θ̂ − θ)·features, at most."""
        scaled = features / self.sizes
        by_data = self.set.size * jnp.linalg.norm(lower_solve(self.factor, scaled[:, None]))
        return jnp.minimum(by_data, 2.0 * self.set.radius * jnp.linalg.norm(scaled))

    def promised(self, features: Float[Array, " k"]) -> Float[Array, ""]:
        """θ̂·features, as far as the data know."""
        return matmul(self.set.centre, features / self.sizes)

    def guaranteed(self, features: Float[Array, " k"]) -> Float[Array, ""]:
        """min over Θ and the rewards that are believed of θ·features, at least."""
        by_one = jnp.min(matmul(self.believed, features / self.sizes), initial=jnp.inf)
        return jnp.minimum(self.promised(features) - self.uncertainty(features), by_one)


def possible_rewards(
    x: Float[Array, "N k"],
    found: RewardFit,
    epsilon: Float[Array, ""],
    hiding: Bool[Array, ""],
    *,
    believe_disputes: bool = False,
) -> PossibleRewards:
    """What the undisputed pairs leave possible if a share ε of the pairs may be corrupt: along one direction, or, if
    lies may be `hiding` among them, along all at once. `believe_disputes`: as of `secured`.
    """
    everywhere = jnp.sqrt(chi_square_quantile(CONFIDENCE, jnp.maximum(found.rank, 1)))
    width = jnp.where(hiding, everywhere, STANDARD_ERRORS).astype(x.dtype)
    sizes = typical_entries(x)
    sure = secured(x, found, epsilon, believe_disputes=believe_disputes)
    known = sure.information / (sizes[:, None] * sizes)
    centre = sure.theta * sizes
    radius = REACH * jnp.linalg.norm(centre) + LEAST_REACH
    floor = (width / radius) ** 2 * jnp.eye(x.shape[1], dtype=x.dtype)
    return PossibleRewards(
        ellipsoid(known, centre, width, radius), sizes, cholesky(known + floor), _believed(found) * sizes
    )


def _believed(found: RewardFit) -> Float[Array, "E k"]:
    """The plausible explanations; every other row is θ̂."""
    counts = found.explanations.probability >= RobustFit().plausible
    return jnp.where(counts[:, None], found.explanations.theta, found.theta)
