"""How suspicious each pair of a data set is to a reward estimator, and which to look at first."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax.checks import check_epsilon, check_positive
from robust_rlhf_jax.corruption_budget import corruption_count
from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.kernels.ranking import largest_to_rounding
from robust_rlhf_jax.preferences import Labelled, PreferenceData, as_labelled
from robust_rlhf_jax.preferences.table_check import stand_ins
from robust_rlhf_jax.rewards import CEILING, RobustFit, Streaming
from robust_rlhf_jax.rewards.alternative import Alternative
from robust_rlhf_jax.rewards.registry import DEFAULT as DEFAULT_ESTIMATOR
from robust_rlhf_jax.rewards.registry import Entry, named
from robust_rlhf_jax.rewards.reward_fit import RewardFit
from robust_rlhf_jax.rewards.streamed import fit_by_passes, held_pairs, in_memory
from robust_rlhf_jax.sources import PairSource

# Share of the ⌊εN⌋ flags, in ε, that goes to an explanation which contradicts the believed one: if it holds, and two
# thirds of what it names are corrupt, the flags do no worse than chance. Half of them at most.
HEDGED = 1.5


def suspicion_scores(
    data: Pairs | PreferenceData | PairSource,
    epsilon: float | Float[Array, ""] | None = None,
    *,
    estimator: str = DEFAULT_ESTIMATOR,
    radius: float | Float[Array, ""] | None = None,
    groups: Int[np.ndarray, " N"] | None = None,
    ask_table: bool = True,
    streaming: Streaming | None = None,
) -> Float[Array, " N"]:
    """A number for each pair, higher where it is likelier to be corrupt; only the order means something.

    By default it is the probability that a pair is corrupt by `fit_reward`: pairs that the rest contradicts come first,
    then labels by their surprise, those in crowds before single ones. On clean data nothing is left out, and honest
    rare pairs are no more suspicious than others. Other estimators give the surprise −log P_θ(o|x) of the label;
    "filtered" multiplies it by 5 for pairs that the filter removed, if their labels differ from the rest's.
    `audit.average_precision` says how good an order is if the corrupt pairs are known; `audit.audit`
    scores pairs by fits that did not see them. Pairs whose features are not the table's (`off_table`) are certainly
    corrupt, unless they are more than half: they come first, 1 above the largest of the others, and no fit sees them.
    Jit- and vmap-able.

    **Arguments:** `epsilon` in [0, ½): the largest share of corrupt pairs; None, for `fit_reward` alone: a fifth.
    `estimator`: a name in `rewards.REWARD_ESTIMATORS`; all but "fit_reward" also take `radius`, the bound on ‖θ‖₂,
    None for √(Hd). `groups` [N]: who labelled each pair, for `fit_reward` alone; None: as `Pairs` know it.
    `ask_table`: false for the estimator's suspicion alone. `streaming`: how a `PairSource` is read: if memory does
    not hold its pairs, by passes, and by `fit_reward` alone.

    **Raises:** ValueError for ε outside [0, ½) or missing where it is needed, a radius that is not positive, malformed
    or non-finite data, an unknown name, groups of another length, `streaming` of what is in memory, or another
    estimator of pairs that memory does not hold.

    **Example:**

    >>> import dataclasses
    >>> import jax.numpy as jnp
    >>> from robust_rlhf_jax import load_rail_choices
    >>> from robust_rlhf_jax.audit import average_precision, suspicion_scores
    >>> rail = load_rail_choices()
    >>> lies = jnp.abs(rail.differences()[:, 0]) > 1.5  # 62 pairs whose prices are far apart
    >>> bad = dataclasses.replace(rail, labels=jnp.where(lies, -rail.labels, rail.labels))
    >>> bool(average_precision(suspicion_scores(bad), lies) > 0.5)  # at random 0.02
    True
    """
    return _examine(data, epsilon, estimator, radius, groups, ask_table, streaming, compare=False).scores


def flag(
    data: Pairs | PreferenceData | PairSource,
    epsilon: float | Float[Array, ""] | None = None,
    *,
    estimator: str = DEFAULT_ESTIMATOR,
    radius: float | Float[Array, ""] | None = None,
    groups: Int[np.ndarray, " N"] | None = None,
    ask_table: bool = True,
    streaming: Streaming | None = None,
) -> Bool[Array, " N"]:
    """Mask of the ⌊εN⌋ pairs of highest `suspicion_scores`, to be looked at or left out.

    Pairs whose scores are equal to rounding, such as the same comparison labelled twice, go by position.

    Without ε the number of flags is the estimate of `estimate_epsilon`, rounded: none on clean data.

    If another explanation contradicts the believed one, and fits the data as well or within ε, it names a share 1.5ε
    of these pairs (`rewards/alternative.py`): whichever of the two is right, the flags do no worse than chance if two
    thirds of what the other one names are corrupt. On honest choices and under random flips there was no such
    explanation (docs/detection.md); labels that are nearly tosses of a coin may have one. By passes over a source,
    explanations that fall far behind are not fitted to their end, and the other explanation may differ from the one in
    memory.

    **Arguments** and **Raises:** as `suspicion_scores`.

    **Example:**

    >>> import dataclasses
    >>> import jax.numpy as jnp
    >>> from robust_rlhf_jax import load_rail_choices
    >>> from robust_rlhf_jax.audit import flag, precision
    >>> rail = load_rail_choices()
    >>> lies = jnp.abs(rail.differences()[:, 0]) > 1.5  # 62 pairs whose prices are far apart
    >>> bad = dataclasses.replace(rail, labels=jnp.where(lies, -rail.labels, rail.labels))
    >>> int(flag(rail).sum()), bool(precision(flag(bad), lies) > 0.5)
    (0, True)
    """
    compare = epsilon is not None
    found = _examine(data, epsilon, estimator, radius, groups, ask_table, streaming, compare)
    if epsilon is not None:
        return _flag(found, corruption_count(epsilon, data.n_pairs), epsilon)
    # The share that was found is a mean of probabilities, so that the number of pairs is rounded.
    share = jnp.minimum(found.share + 0.5 / data.n_pairs, 0.499)
    return _flag(found, corruption_count(share, data.n_pairs), found.share)


class _Examined(NamedTuple):
    """`share`: of the pairs that there is evidence against, 0 where the estimator does not say; `off` [N]: pairs that
    the table contradicts; `alternative`: the pairs that another explanation suspects, None unless it is asked for.
    """

    scores: Float[Array, " N"]
    share: Float[Array, ""]
    off: Bool[Array, " N"]
    alternative: Alternative | None


@jax.jit
def _flag(found: _Examined, count: Int[Array, ""], epsilon: Float[Array, ""]) -> Bool[Array, " N"]:
    if found.alternative is None:
        return largest_to_rounding(found.scores, count)
    doubtful = jnp.maximum(count - jnp.sum(found.off), 0)
    theirs = jnp.round(jnp.minimum(HEDGED * epsilon, 0.5) * doubtful * found.alternative.exists).astype(
        count.dtype
    )
    ours = largest_to_rounding(found.scores, count - theirs)
    return ours | largest_to_rounding(jnp.where(ours, -jnp.inf, found.alternative.suspicion), theirs)


def _examine(
    data: Pairs | PreferenceData | PairSource,
    epsilon: float | Float[Array, ""] | None,
    estimator: str,
    radius: float | Float[Array, ""] | None,
    groups: Int[np.ndarray, " N"] | None,
    ask_table: bool,
    streaming: Streaming | None,
    compare: bool,
) -> _Examined:
    entry = named(estimator, epsilon)
    if epsilon is not None:
        check_epsilon(epsilon)
    if radius is not None:
        check_positive(radius, "radius")
    if not isinstance(data, Pairs | PreferenceData) and entry.evidence is not None:
        held = held_pairs(data, streaming)
        if held is None:
            return _by_passes(data, CEILING if epsilon is None else epsilon, groups, streaming, compare)
        data, streaming = held, None
    data = in_memory(data, f"estimator={estimator!r} fits all pairs at once", streaming)
    seen = as_labelled(data, groups, ask_table=ask_table)
    radius = jnp.asarray(seen.x.shape[1] ** 0.5 if radius is None else radius, seen.x.dtype)
    ceiling = jnp.asarray(CEILING if epsilon is None else epsilon, seen.x.dtype)
    return _scores(seen, ceiling, radius, entry, compare)


def _by_passes(
    source: PairSource,
    epsilon: float | Float[Array, ""],
    groups: Int[np.ndarray, " N"] | None,
    streaming: Streaming | None,
    compare: bool,
) -> _Examined:
    """What `fit_reward` says of the pairs of a source; no table contradicts any."""
    config = RobustFit()
    found, other = fit_by_passes(source, epsilon, groups, config, streaming or Streaming(), compare)
    return _Examined(found.suspicion, _share(found), jnp.zeros(source.n_pairs, bool), other)


def _share(found: RewardFit) -> Float[Array, ""]:
    """The share of the pairs that there is evidence against."""
    return jnp.maximum(found.epsilon, found.interval[0])


@eqx.filter_jit
def _scores(
    seen: Labelled, epsilon: Float[Array, ""], radius: Float[Array, ""], entry: Entry, compare: bool
) -> _Examined:
    off = seen.off
    if entry.evidence is not None:
        found, alternative = entry.evidence(
            seen.believed_x, seen.labels, epsilon, seen.groups, compare, seen.comparisons
        )
        scores, share = found.suspicion, _share(found)
    else:
        rows = stand_ins(off)
        scores = entry.estimate(seen.x[rows], seen.labels[rows], epsilon, radius=radius).suspicion
        share, alternative = jnp.zeros((), scores.dtype), None
    scores = jnp.where(off, jnp.max(scores) + 1, scores)
    return _Examined(scores, share + jnp.mean(off, dtype=scores.dtype), off, alternative)
