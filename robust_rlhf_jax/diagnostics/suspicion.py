"""How suspicious each pair of a data set is to a reward estimator, and which to look at first."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from robust_rlhf_jax.attacks.base import corruption_count, largest
from robust_rlhf_jax.checks import check_epsilon
from robust_rlhf_jax.estimators import REWARD_ESTIMATORS
from robust_rlhf_jax.preferences import (
    PreferenceData,
    believed,
    check_preferences,
    leave_out,
    off_table,
)


def suspicion_scores(
    data: PreferenceData,
    epsilon: float | Float[Array, ""],
    *,
    estimator: str = "filtered",
    radius: float | Float[Array, ""] | None = None,
    ask_table: bool = True,
) -> Float[Array, " N"]:
    """A number for each pair, higher where it is likelier to be corrupt; only the order means something.

    What it measures is the estimator's own: the surprise −log P_θ(o|x) of the label, in "filtered" times 5 for pairs
    that the filter removed where their labels differ from the rest's. `diagnostics.average_precision` says how good
    an order is where the corrupt pairs are known; `diagnostics.audit` scores pairs by fits that did not see them.
    Pairs whose features are not the table's (`off_table`) are corrupt for certain: they come first, 1 above the
    largest of the others, and no fit sees them; unless they are more than half. Jit- and vmap-able.

    **Arguments:** `epsilon` in [0, ½): fraction of pairs that may be corrupt; `estimator`: a name in
    `estimators.REWARD_ESTIMATORS`; `radius`: bound on ‖θ‖₂, None for √(Hd); `ask_table`: false for the estimator's
    suspicion alone.

    **Raises:** ValueError for ε outside [0, ½), malformed or non-finite data, or an unknown name.
    """
    check_epsilon(epsilon)
    check_preferences(data)
    if estimator not in REWARD_ESTIMATORS:
        raise ValueError(f"estimator={estimator!r} is unknown: it is one of {', '.join(REWARD_ESTIMATORS)}.")
    dtype = data.features.dtype
    radius = jnp.asarray(data.theta_dim**0.5 if radius is None else radius, dtype)
    off = believed(off_table(data)) if ask_table else jnp.zeros(data.n_pairs, bool)
    return _scores(data, off, jnp.asarray(epsilon, dtype), radius, estimator)


@eqx.filter_jit
def _scores(data, off, epsilon, radius, estimator):
    known = leave_out(data, off)
    scores = REWARD_ESTIMATORS[estimator](known.differences(), known.labels, epsilon, radius=radius).suspicion
    return jnp.where(off, jnp.max(scores) + 1, scores)


def flag(
    data: PreferenceData,
    epsilon: float | Float[Array, ""],
    *,
    estimator: str = "filtered",
    radius: float | Float[Array, ""] | None = None,
    ask_table: bool = True,
) -> Bool[Array, " N"]:
    """Mask of the ⌊εN⌋ pairs of highest `suspicion_scores`, to be looked at or left out; ties by position.

    **Arguments** and **Raises:** as `suspicion_scores`.
    """
    scores = suspicion_scores(data, epsilon, estimator=estimator, radius=radius, ask_table=ask_table)
    return largest(scores, corruption_count(epsilon, data.n_pairs))
