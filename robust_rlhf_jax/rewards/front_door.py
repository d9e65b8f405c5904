"""`fit_reward`: from preferences to a reward, whether or not anyone knows how corrupt they are."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.checks import check_epsilon, is_traced
from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.io.pairs import given_names
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.likelihood.davidson import tie_strength
from robust_rlhf_jax.preferences import (
    Labelled,
    PreferenceData,
    as_labelled,
    check_preferences,
    group_numbers,
)
from robust_rlhf_jax.sources import PairSource

from .config import CEILING, RobustFit
from .fit import fit_differences
from .model import RewardModel
from .reward_fit import RewardFit
from .streamed import Streaming, fit_source
from .streamed.held import IN_MEMORY


def fit_reward(
    data: Pairs | PreferenceData | PairSource,
    epsilon: float | Float[Array, ""] | None = None,
    *,
    groups: Int[np.ndarray, " N"] | None = None,
    config: RobustFit | None = None,
    streaming: Streaming | None = None,
) -> RewardModel:
    """A linear reward from preferences, some of which may be corrupt.

    Without evidence of corruption it is maximum likelihood on all pairs, with a weak prior whose strength is chosen by
    the evidence. ε is a ceiling, not a quota: a pair is left out only as far as the rest contradicts it. If several
    rewards explain the pairs, each counts by its probability (`RewardModel.explanations`). Pairs whose recorded
    features differ from the table are always left out (`off_table`). Pairs whose options are equal say nothing:
    the reward is as if they were absent, and all εN corrupt pairs may be among the others, up to a fifth of those.
    The result depends neither on the features' units nor on which option of a pair stands first. θ is fitted to the
    decided pairs; ties say how often options tie (`RewardModel.outcome_probabilities`), and are never doubted.

    **Arguments:**

    - `data`: N `Pairs` (`load`, `Pairs(chosen, rejected)`), ties and pairs of weight 0 among them if there are any, or
      `PreferenceData` (`sample_preferences`), or a `PairSource` (`sources.open_pairs`), which need not fit into memory.
    - `epsilon`: the largest share of the pairs that may be corrupt, in [0, ½); None: decided from the evidence, up to a
      fifth of the pairs; 0: plain maximum likelihood.
    - `groups` [N]: who labelled each pair (any values); labels of one group are dependent, and so are
      copies of one answer. None: the groups of the `Pairs`, else independent pairs. If `Pairs` compare the same
      two options again and again, those labels are dependent as far as features miss a quality of the options.
    - `config`: every constant that decides, `RobustFit()` by default.
    - `streaming`: how a `PairSource` is read: memory, checkpoint, progress (`rewards.Streaming`).

    **Returns:** `RewardModel`; `model.message` says what was found.

    **Raises:** ValueError for ε outside [0, ½), malformed or non-finite data, labels other than ±1, `groups` of
    another length, ties alone, or `streaming` for data in memory.

    **Source:** candidates by the paper's Algorithm 2 and filters; judged by a mixture with concomitant
    variables, weighed by pseudo-BMA+ (`rewards/decision.py`). Measured in docs/do_no_harm.md.

    **Example:**

    >>> from robust_rlhf_jax import fit_reward, load_rail_choices, preferences
    >>> fit_reward(load_rail_choices(), groups=preferences.rail_people()).message
    'No evidence of corruption: maximum likelihood on all 2,929 pairs.'
    """
    if epsilon is not None:
        if np.ndim(epsilon):
            raise ValueError(
                f"epsilon=an array of shape {np.shape(epsilon)} is not a number: give a fraction in [0, 0.5); two "
                "options go in as Pairs(chosen, rejected)."
            )
        check_epsilon(epsilon)
    if streaming is not None and not isinstance(streaming, Streaming):
        raise ValueError(f"streaming={streaming!r}: give rewards.Streaming(memory=…).")
    if config is not None and not isinstance(config, RobustFit):
        raise ValueError(f"config={config!r}: give rewards.RobustFit(…).")
    level = CEILING if epsilon is None else epsilon
    if not isinstance(data, Pairs | PreferenceData):
        return reward_model(fit_source(data, level, groups, config, streaming), names=known_names(data))
    if streaming is not None:
        raise ValueError(IN_MEMORY)
    if isinstance(data, Pairs) and not data.fitted.all():
        return _fit_with_ties(data, level, groups, config)
    seen = as_labelled(data, groups)
    return reward_model(fit_labelled(seen, jnp.asarray(level, seen.x.dtype), config), names=known_names(data))


def _fit_with_ties(
    data: Pairs,
    epsilon: float | Float[Array, ""],
    groups: Int[np.ndarray, " N"] | None,
    config: RobustFit | None,
) -> RewardModel:
    """θ and weights from the decided pairs, ν from all; a tie counts in full and is not suspected, a pair of weight 0
    counts for nothing.
    """
    check_preferences(data)
    decided = data.fitted
    if not decided.any():
        raise ValueError(f"{data.path} has ties or pairs of weight 0 alone: no pair says what is preferred.")
    groups = data.clusters if groups is None else groups
    numbers = None if groups is None else np.asarray(group_numbers(groups, data.n_pairs))
    seen = as_labelled(data.decided(), None if numbers is None else numbers[decided])
    found = fit_labelled(seen, jnp.asarray(epsilon, seen.x.dtype), config)
    counts = data.ties if data.weights is None else data.ties & (data.weights > 0)

    def everywhere(values: Float[Array, "*e M"], others: np.ndarray) -> Float[Array, "*e N"]:
        whole = jnp.broadcast_to(jnp.asarray(others, values.dtype), (*values.shape[:-1], data.n_pairs))
        return whole.at[..., np.flatnonzero(decided)].set(values)

    found = found._replace(
        weights=everywhere(found.weights, counts),
        undisputed=everywhere(found.undisputed, counts),
        suspicion=everywhere(found.suspicion, np.zeros(data.n_pairs)),
        explanations=found.explanations._replace(weights=everywhere(found.explanations.weights, counts)),
    )
    margins = matmul(found.explanations.theta, jnp.asarray(data.preferred_differences()).T)
    tie = tie_strength(margins, jnp.asarray(counts), found.weights, found.explanations.probability)
    return reward_model(found, tie, int(decided.sum()), known_names(data))


def fit_data(data: Pairs | PreferenceData, epsilon: Float[Array, ""]) -> RewardFit:
    """`fit_labelled` of a data set. Jit- and vmap-able.

    **Example:**

    >>> import jax.numpy as jnp
    >>> from robust_rlhf_jax import preferences
    >>> from robust_rlhf_jax.rewards import fit_data
    >>> float(fit_data(preferences.rail_pairs(), jnp.float32(0.1)).epsilon)  # the share of pairs that is left out
    0.0
    """
    return fit_labelled(as_labelled(data), epsilon)


def fit_labelled(seen: Labelled, epsilon: Float[Array, ""], config: RobustFit | None = None) -> RewardFit:
    """`fit_differences`, what the table contradicts left out. Jit- and vmap-able."""
    if not is_traced(seen.off) and not np.asarray(seen.off).any():
        return fit_differences(seen.x, seen.labels, epsilon, seen.groups, config, seen.comparisons)
    found = fit_differences(seen.believed_x, seen.labels, epsilon, seen.groups, config, seen.comparisons)
    gone = jnp.mean(seen.off, dtype=seen.x.dtype)
    kept = jnp.where(seen.off, 0.0, 1.0).astype(seen.x.dtype)
    return found._replace(
        weights=found.weights * kept,
        undisputed=found.undisputed * kept,
        explanations=found.explanations._replace(weights=found.explanations.weights * kept),
        suspicion=jnp.where(seen.off, 1.0, found.suspicion),
        epsilon=found.epsilon + gone,
        interval=found.interval + gone,
    )


def reward_model(
    found: RewardFit,
    tie: Float[Array, ""] | None = None,
    n_decided: int | None = None,
    names: tuple[str, ...] = (),
) -> RewardModel:
    """A `RewardModel` of a fit; outside of jit without the empty rows of `doubted`.

    **Arguments:** `tie`: Davidson's ν, None for no ties; `n_decided`: None for all pairs; `names`: of the features.
    """
    doubted = found.doubted
    if not is_traced(doubted) and doubted.ndim == 2:
        length = np.linalg.norm(np.asarray(doubted), axis=1)
        doubted = jnp.asarray(np.asarray(doubted)[length > 0] / length[length > 0, None])
    whole = jnp.zeros_like(found.epsilon)
    n = found.weights.shape[-1] + whole.astype(jnp.int32) if n_decided is None else jnp.asarray(n_decided)
    nu = whole if tie is None else tie
    return RewardModel(**found._replace(doubted=doubted)._asdict(), tie=nu, n_decided=n, names=names)


def known_names(data: Pairs | PreferenceData | PairSource) -> tuple[str, ...]:
    """What the entries of θ are called; () where nobody named them, or each step of a trajectory has its own."""
    if isinstance(data, PreferenceData):
        return data.names if data.theta_dim == data.reward_dim else ()
    return given_names(data) if isinstance(data, Pairs) else getattr(data, "names", ())
