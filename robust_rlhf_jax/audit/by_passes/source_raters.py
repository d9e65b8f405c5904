"""What margins alone say of the raters of a source: agreement, reliability, how many of their pairs are left out."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from robust_rlhf_jax.io.unnamed_raters import each_named, has_name
from robust_rlhf_jax.raters import reliability
from robust_rlhf_jax.sources.beside import sortable

# Pairs from which reliabilities are estimated, as many of each rater as there can be.
MOST_PAIRS, SEED = 100_000, 0


class SourceRater(NamedTuple):
    """A rater of a source: `pairs` judged; shares of them that the fit `left_out`, and that it predicts, `agreement`;
    `reliability` in the others with its 95 % interval: 1 as the crowd, 0 a coin, below 0 the opposite.

    **Example:**

    >>> from robust_rlhf_jax.audit import SourceRater
    >>> SourceRater("ann", 40, 0.05, 0.8, 1.1, 0.7, 1.6).name
    'ann'
    """

    name: str
    pairs: int
    left_out: float
    agreement: float
    reliability: float
    low: float
    high: float


def source_raters(
    raters: Any, margins: Float[np.ndarray, " N"], keep: Bool[np.ndarray, " N"]
) -> tuple[SourceRater, ...]:
    """One `SourceRater` for each rater with a name, the least reliable first; none of fewer than two. Pairs without a
    name may be of several raters, and are left out.

    **Arguments:** `margins` [N]: under the fit to all pairs, the rater's own among them, so that agreement is a little
    too high where a rater judged many of them.
    """
    raters = each_named(sortable(np.asarray(raters)))
    told = has_name(raters)
    raters, margins, keep = raters[told], margins[told], keep[told]
    names, of = np.unique(raters, return_inverse=True)
    if len(names) < 2:
        return ()
    n = np.bincount(of)
    # Reliabilities come from the pairs that are kept; `left_out` counts the others. One far out against the fit would
    # otherwise make its rater a liar.
    kept = np.flatnonzero(keep)
    some = kept[_some_of_each(of[kept], np.bincount(of[kept], minlength=len(names)))]
    found = reliability(margins[some].astype(np.float32), of[some].astype(np.int32), len(names))
    agreed = np.bincount(of, (margins > 0) + 0.5 * (margins == 0)) / n
    gone = np.bincount(of, ~keep) / n
    numbers = (np.asarray(part, float) for part in (found.mean, found.low, found.high))
    rows = zip(names.tolist(), n, gone, agreed, *numbers, strict=True)
    made = (
        SourceRater(str(name), int(count), *map(float, (out, agreement, mean, low, high)))
        for name, count, out, agreement, mean, low, high in rows
    )
    return tuple(sorted(made, key=lambda rater: rater.reliability))


def _some_of_each(of: Int[np.ndarray, " N"], n: Int[np.ndarray, " K"]) -> Int[np.ndarray, " m"]:
    """At most `MOST_PAIRS` pairs: all of raters who judged few, and as many of each of the others."""
    order = np.random.default_rng(SEED).permutation(len(of))
    by_rater = order[np.argsort(of[order], kind="stable")]
    rank = np.arange(len(of)) - np.repeat(np.cumsum(n) - n, n)
    each = max(1, MOST_PAIRS // len(n))
    while np.minimum(n, 2 * each).sum() <= MOST_PAIRS and each < n.max():
        each *= 2
    return by_rater[rank < each]
