"""`fit_reward`: from preferences to a reward, whether or not anyone knows how corrupt they are."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax.checks import check_epsilon, is_traced
from robust_rlhf_jax.preferences import PreferenceData, check_preferences
from robust_rlhf_jax.preferences.table_check import believed, off_table

from .config import CEILING, RobustFit
from .fit import RewardFit, fit_differences
from .model import RewardModel


def fit_reward(
    data: PreferenceData,
    epsilon: float | Float[Array, ""] | None = None,
    *,
    groups: Int[np.ndarray, " N"] | None = None,
    config: RobustFit | None = None,
) -> RewardModel:
    """A linear reward from preferences, some of which may be corrupt.

    Without evidence of corruption it is maximum likelihood on all pairs, with a weak prior whose strength the pairs
    choose. ε is a ceiling, not a quota: a pair is left out only as far as the rest contradicts it. Where several
    rewards explain the pairs, each counts as far as it is believed (`RewardModel.explanations`). Pairs whose recorded
    features differ from the table are left out for certain (`off_table`). Nothing depends on the features' units, nor
    on which option of a pair stands first.

    **Arguments:**

    - `data`: `PreferenceData` of N pairs (`load`, `preferences_from_features`, `sample_preferences`).
    - `epsilon`: the largest share of the pairs that may be corrupt, in [0, ½); None: decided from the evidence, up to a
      fifth of the pairs; 0: plain maximum likelihood.
    - `groups` [N]: who labelled each pair (any values), whose labels hang together; None: each pair for itself.
    - `config`: every constant that decides, `RobustFit()` by default.

    **Returns:** `RewardModel`; `model.message` says what was found.

    **Raises:** ValueError for ε outside [0, ½), malformed or non-finite data, labels other than ±1, or `groups` of
    another length.

    **Source:** candidates by the paper's Algorithm 2, Sever and filters; judged by a mixture with concomitant
    variables, weighed by pseudo-BMA+ (`rewards/decision.py`). Measured in docs/do_no_harm.md.

    **Example:**

    >>> from robust_rlhf_jax import fit_reward, load_rail_choices, preferences
    >>> fit_reward(load_rail_choices(), groups=preferences.rail_people()).message
    'No evidence of corruption: maximum likelihood on all 2,929 pairs.'
    """
    check_preferences(data)
    dtype = data.features.dtype
    if epsilon is not None:
        check_epsilon(epsilon)
    ceiling = jnp.asarray(CEILING if epsilon is None else epsilon, dtype)
    numbers = None if groups is None else group_numbers(groups, data.n_pairs)
    found = fit_data(data, ceiling, numbers, config)
    return reward_model(found)


def fit_data(
    data: PreferenceData,
    epsilon: Float[Array, ""],
    groups: Int[Array, " N"] | None = None,
    config: RobustFit | None = None,
) -> RewardFit:
    """`fit_differences` of a data set, what the table contradicts left out. Jit- and vmap-able."""
    x, off = believed_differences(data)
    found = fit_differences(x, data.labels.astype(x.dtype), epsilon, groups, config)
    gone = jnp.mean(off, dtype=x.dtype)
    kept = jnp.where(off, 0.0, 1.0).astype(x.dtype)
    return found._replace(
        weights=found.weights * kept,
        undisputed=found.undisputed * kept,
        explanations=found.explanations._replace(weights=found.explanations.weights * kept),
        suspicion=jnp.where(off, 1.0, found.suspicion),
        epsilon=found.epsilon + gone,
        interval=found.interval + gone,
    )


def believed_differences(data: PreferenceData) -> tuple[Float[Array, "N k"], Bool[Array, " N"]]:
    """The differences, 0 where the table contradicts a pair, and the mask of those: a row of zeros says nothing."""
    off = believed(off_table(data))
    return jnp.where(off[:, None], 0.0, data.differences()), off


def reward_model(found: RewardFit) -> RewardModel:
    """A `RewardModel` of a fit; outside of jit without the empty rows of `doubted`."""
    doubted = found.doubted
    if not is_traced(doubted) and doubted.ndim == 2:
        length = np.linalg.norm(np.asarray(doubted), axis=1)
        doubted = jnp.asarray(np.asarray(doubted)[length > 0] / length[length > 0, None])
    return RewardModel(**found._replace(doubted=doubted)._asdict())


def group_numbers(groups, n_pairs: int) -> Int[Array, " N"]:
    """Groups of any values as numbers from 0, which `fit_differences` takes.

    **Raises:** ValueError for groups of another length than `n_pairs`.
    """
    groups = np.asarray(groups)
    if groups.shape != (n_pairs,):
        raise ValueError(f"groups has shape {groups.shape}: give one group for each of the {n_pairs} pairs.")
    return jnp.asarray(np.unique(groups, return_inverse=True)[1].astype(np.int32))
