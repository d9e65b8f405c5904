"""Sources for what needs all rows at once: their pairs where memory holds them, else one sentence."""

from typing import Any

import numpy as np

from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.memory import check_room
from robust_rlhf_jax.preferences import PreferenceData
from robust_rlhf_jax.sources import PairSource

from .config import COPIES, Streaming
from .fit import all_of, fits_in_memory

IN_MEMORY = "streaming is for a PairSource: these pairs are in memory; give sources.ArraySource.of_pairs."
WAY_OUT = "give Streaming(memory=…) more, fewer pairs or features, or ask {}, which reads pairs by passes"


def held_pairs(source: PairSource, streaming: Streaming | None = None) -> Pairs | None:
    """The pairs of a source, in float32 and with its groups and names, where a fit to them fits into memory; else None.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.rewards import Streaming
    >>> from robust_rlhf_jax.rewards.streamed import held_pairs
    >>> from robust_rlhf_jax.sources import ArraySource
    >>> source = ArraySource(np.ones((3, 2)))
    >>> held_pairs(source).n_pairs, held_pairs(source, Streaming(memory=100))
    (3, None)
    """
    if not fits_in_memory(source, streaming or Streaming()):
        return None
    more: dict[str, Any] = {"groups": source.groups, "raters": getattr(source, "raters", None)}
    more["names"] = getattr(source, "names", ()) or None
    return Pairs.of_differences(all_of(source), np.ones(source.n_pairs), **more)


def in_memory(
    data: Pairs | PreferenceData | PairSource,
    why: str,
    streaming: Streaming | None = None,
    instead: str = "fit_reward",
) -> Pairs | PreferenceData:
    """`data`, or the pairs of a source that memory holds.

    **Raises:** ValueError for a source of more, which says `why` all rows are needed and what to ask `instead`; and for
    `streaming` of what is in memory.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.rewards.streamed import in_memory
    >>> from robust_rlhf_jax.sources import ArraySource
    >>> in_memory(ArraySource(np.ones((3, 2))), "this looks at all pairs at once").n_pairs
    3
    """
    if isinstance(data, Pairs | PreferenceData):
        if streaming is not None:
            raise ValueError(IN_MEMORY)
        return data
    held = held_pairs(data, streaming)
    if held is None:
        n, k, memory = data.n_pairs, data.n_features, (streaming or Streaming()).memory_bytes
        what = f"{why}, which for {n:,} pairs of {k:,} features"
        check_room(what, 4 * COPIES * n * k, WAY_OUT.format(instead), memory)
    assert held is not None
    return held
