"""The robust reward of a source of pairs: in memory where they fit, else by passes."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.io.pairs import Pairs, clusters_of
from robust_rlhf_jax.io.unnamed_raters import each_named
from robust_rlhf_jax.memory import give_back
from robust_rlhf_jax.preferences import as_labelled, group_numbers
from robust_rlhf_jax.preferences.validation import check_source
from robust_rlhf_jax.sources import PairSource
from robust_rlhf_jax.sources.protocol import checked_blocks

from ..alternative import Alternative
from ..conclusion import Evidence, conclude
from ..config import RobustFit
from ..fit import fit_differences
from ..reward_fit import RewardFit
from .by_passes import Streamed
from .config import COPIES, Streaming
from .coordinates import (
    check_rows_finite,
)
from .engine import T


def fit_source(
    source: PairSource,
    epsilon: float | Float[Array, ""],
    groups: Int[np.ndarray, " N"] | None = None,
    config: RobustFit | None = None,
    streaming: Streaming | None = None,
) -> RewardFit:
    """`fit_differences` of a `PairSource`, of which no more is in memory than `streaming` allows. Not under jit.

    Where the pairs fit into memory it is the same fit. Else the explanations are found in a sample, and settled on all
    pairs by a pass for each step of Newton's method; all pairs decide which of them is believed. What holds one number
    per pair (margins, weights) stays in memory.

    1. a sample; 2. second moments of all pairs; 3. their lengths; 4. … gradients; last: leverages.

    **Raises:** ValueError for features that are not finite, a source that gives other pairs than it said, groups of
    another length, or too little memory.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax import preferences, rewards
    >>> from robust_rlhf_jax.sources import ArraySource
    >>> source = ArraySource.of_pairs(preferences.rail_pairs())
    >>> fit = rewards.fit_source(source, 0.1)
    >>> [round(float(weight), 1) for weight in fit.theta], float(fit.epsilon)
    ([-1.9, -0.8, -0.2, -0.6], 0.0)
    """
    task = _Task(source, epsilon, groups, config or RobustFit(), streaming or Streaming())
    return task.led(task.fitted)


def fit_by_passes(
    source: PairSource,
    epsilon: float | Float[Array, ""],
    groups: Int[np.ndarray, " N"] | None,
    config: RobustFit,
    streaming: Streaming,
    compare: bool = False,
) -> tuple[RewardFit, Alternative | None]:
    """`fit_source` by passes, even if the pairs fit into memory; with the alternative if asked to `compare`.

    **Raises:** as `fit_source`.
    """
    task = _Task(source, epsilon, groups, config, streaming)
    return task.led(functools.partial(task.by_passes, compare))


class _Task(NamedTuple):
    """What `fit_source` is given."""

    source: PairSource
    epsilon: float | Float[Array, ""]
    groups: Int[np.ndarray, " N"] | None
    config: RobustFit
    streaming: Streaming

    def led(self, fit: Callable[[], T]) -> T:
        """What `fit` gives, by the engine."""
        engine = self.streaming.engine
        return fit() if engine is None else engine.led(self.source, fit)

    def fitted(self) -> RewardFit:
        if not fits_in_memory(self.source, self.streaming):
            return self.by_passes(compare=False)[0]
        x = all_of(self.source)
        check_rows_finite(np.asarray(np.isfinite(x).all(axis=1)), self.source)
        seen = as_labelled(Pairs.of_differences(x, np.ones(self.source.n_pairs)))
        numbers = _groups_of(self.source, self.groups)
        return fit_differences(seen.x, seen.labels, self._level(), numbers, self.config, seen.comparisons)

    def by_passes(self, compare: bool) -> tuple[RewardFit, Alternative | None]:
        numbers, level = _groups_of(self.source, self.groups), self._level()
        evidence = Streamed(self.source, numbers, float(level), self.config, self.streaming).evidence()
        give_back()
        return _conclude(evidence, level, self.config, compare)

    def _level(self) -> Float[Array, ""]:
        return jnp.asarray(self.epsilon, jnp.float32)


def _groups_of(source: PairSource, groups: Int[np.ndarray, " N"] | None) -> Int[Array, " N"] | None:
    """Numbers of the groups that the user names, else of the source's `Pairs.clusters`."""
    if groups is None:
        known = [getattr(source, name, None) for name in ("groups", "raters")]
        groups = clusters_of(*(None if names is None else each_named(names) for names in known))
        if groups is None:
            return None
    return group_numbers(groups, source.n_pairs)


def fits_in_memory(source: PairSource, streaming: Streaming) -> bool:
    """Whether the fit in memory takes no more than it may.

    **Raises:** TypeError for what is no source of pairs.
    """
    check_source(source)
    return 4 * COPIES * source.n_pairs * source.n_features <= streaming.memory_bytes


def all_of(source: PairSource) -> Float[np.ndarray, "N k"]:
    """All differences in float32.

    **Raises:** ValueError where the source does not give the pairs that it said.
    """
    blocks = [block.astype(np.float32) for block in checked_blocks(source, 1 << 14)]
    return np.concatenate(blocks)


@eqx.filter_jit
def _conclude(evidence: Evidence, epsilon: Float[Array, ""], config: RobustFit, compare: bool):
    return conclude(evidence, epsilon, config, compare)
