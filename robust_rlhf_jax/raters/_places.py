"""Where raters who are asked for stand among those of the data, as 4, 4.0 or "4"."""

import re
from typing import Any

import numpy as np
from jaxtyping import Int

from robust_rlhf_jax.io.unnamed_raters import has_name

from ._missing import listed

WHOLE = re.compile(r"([+-]?\d+)\.0+")


def places_of(asked: Any, names: np.ndarray) -> Int[np.ndarray, " M"]:
    """The number of each rater who is `asked` for among the `names` [K] of `each_named`; K for one who has none, is not
    among them, or could be two of them.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.raters._places import places_of
    >>> places_of([7.0, "4", "Ann", None], np.array(["4", "7", "nobody, row 2"])).tolist()
    [1, 0, 3, 3]
    """
    strangers = len(names)
    exact = {
        name: k for k, (name, named) in enumerate(zip(names.tolist(), has_name(names), strict=True)) if named
    }
    alike: dict[str, int] = {}
    for name, k in exact.items():
        alike[_word(name)] = strangers if _word(name) in alike else k
    return np.array(
        [
            strangers if one is None else exact[one] if one in exact else alike.get(_word(one), strangers)
            for one in listed(asked)
        ],
        int,
    )


def _word(name: Any) -> str:
    """How a name is written where the number that it is lost or won its decimals in a table."""
    said = str(name).strip()
    whole = WHOLE.fullmatch(said)
    return whole[1] if whole else said
