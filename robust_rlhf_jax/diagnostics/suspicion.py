"""How suspicious each pair of a data set is to a reward estimator, and which to look at first."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from robust_rlhf_jax.attacks.base import corruption_count, largest
from robust_rlhf_jax.checks import check_epsilon
from robust_rlhf_jax.estimators import REWARD_ESTIMATORS
from robust_rlhf_jax.preferences import PreferenceData, check_preferences


def suspicion_scores(
    data: PreferenceData,
    epsilon: float | Float[Array, ""],
    *,
    estimator: str = "filtered",
    radius: float | Float[Array, ""] | None = None,
) -> Float[Array, " N"]:
    """A number for each pair, higher where it is likelier to be corrupt; only the order means something.

    What it measures is the estimator's own: the surprise −log P_θ(o|x) of the label, in "filtered" times 5 for pairs
    that the filter removed where their labels differ from the rest's. `diagnostics.average_precision` says how good
    an order is where the corrupt pairs are known; `diagnostics.audit` scores pairs by fits that did not see them.
    Jit- and vmap-able.

    **Arguments:** `epsilon` in [0, ½): fraction of pairs that may be corrupt; `estimator`: a name in
    `estimators.REWARD_ESTIMATORS`; `radius`: bound on ‖θ‖₂, None for √(Hd).

    **Raises:** ValueError for ε outside [0, ½), malformed or non-finite data, or an unknown name.
    """
    check_epsilon(epsilon)
    check_preferences(data)
    if estimator not in REWARD_ESTIMATORS:
        raise ValueError(f"estimator={estimator!r} is unknown: it is one of {', '.join(REWARD_ESTIMATORS)}.")
    dtype = data.features.dtype
    radius = jnp.asarray(data.theta_dim**0.5 if radius is None else radius, dtype)
    return _scores(data, jnp.asarray(epsilon, dtype), radius, estimator)


@eqx.filter_jit
def _scores(data, epsilon, radius, estimator):
    return REWARD_ESTIMATORS[estimator](data.differences(), data.labels, epsilon, radius=radius).suspicion


def flag(
    data: PreferenceData,
    epsilon: float | Float[Array, ""],
    *,
    estimator: str = "filtered",
    radius: float | Float[Array, ""] | None = None,
) -> Bool[Array, " N"]:
    """Mask of the ⌊εN⌋ pairs of highest `suspicion_scores`, to be looked at or left out; ties by position.

    **Arguments** and **Raises:** as `suspicion_scores`.
    """
    scores = suspicion_scores(data, epsilon, estimator=estimator, radius=radius)
    return largest(scores, corruption_count(epsilon, data.n_pairs))
