"""Two rewards that both explain a file, side by side, with the pairs that tell them apart."""

from typing import Any

import numpy as np
from scipy.special import expit

from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.kernels.ranking import highest_first

from ..pair_columns import found_at
from ..result import AuditResult
from .one_pair import largest_differences, texts_of

# Features and pairs that are shown.
FEATURES, DECIDING = 10, 8


def contended(pairs: Pairs, result: AuditResult, names: tuple[str, ...]) -> dict[str, Any] | None:
    """What the template shows of `result.contention`, an audit of `pairs`; None where no two rewards contend.

    `names`: of the features, as they are shown.
    """
    found = result.contention
    if found is None:
        return None
    chosen_first = result.differences * result.labels[:, None]
    margins = chosen_first @ found.theta.T
    worth = found.theta * result.differences.std(axis=0)
    order = highest_first(np.abs(worth[0] - worth[1]))[:FEATURES]
    deciding = found.deciding(chosen_first, DECIDING)
    places = found_at(pairs, deciding)
    return {
        "sentence": found.sentence,
        "fits": found.fits,
        "of": result.robust.status.size,
        "probability": found.probability,
        "needed": found.needed,
        "agrees": (margins > 0).mean(axis=0),
        "apart": float((margins[:, 0] * margins[:, 1] < 0).mean()),
        "features": [(names[j], *map(float, worth[:, j])) for j in order],
        "deciding": [
            _deciding(pairs, int(n), at, margins[n]) for n, at in zip(deciding, places, strict=True)
        ],
    }


def _deciding(pairs: Pairs, i: int, at: str, margins) -> dict[str, Any]:
    return {
        "row": int(pairs.rows[i]) + 1,
        "at": at,
        "chances": expit(margins),
        "texts": texts_of(pairs, i),
        "features": None if pairs.texts is not None else largest_differences(pairs, i),
    }
