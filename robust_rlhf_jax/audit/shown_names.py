"""Names of features as people read them: of a direction of hashed texts its words; files keep the machine's names."""

import re

import numpy as np

from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.io.featurisers import HashedNgrams
from robust_rlhf_jax.io.featurisers.topic_words import topic_words

_TOPIC = re.compile(r"topic\d+")


def feature_words(pairs: Pairs) -> dict[str, dict[str, list[str]]]:
    """{"topic1": {"more": n-grams, "less": n-grams}} of the directions of hashed texts; {} where there are none."""
    places = [j for j, name in enumerate(pairs.names) if _TOPIC.fullmatch(name)]
    if pairs.texts is None or not isinstance(pairs.featuriser, HashedNgrams) or not places:
        return {}
    values = np.concatenate([np.asarray(side)[:, places] for side in (pairs.chosen, pairs.rejected)])
    found = topic_words(pairs.texts, values)
    return {
        pairs.names[j]: {"more": more, "less": less} for j, (more, less) in zip(places, found, strict=True)
    }


def shown_names(pairs: Pairs, words: dict[str, dict[str, list[str]]] | None = None) -> tuple[str, ...]:
    """One name for each feature: for a direction such as topic “red kettle”, “pot” rather than “chair”.

    **Arguments:** `words`: `feature_words(pairs)`, where they are known.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax import Pairs
    >>> from robust_rlhf_jax.audit.shown_names import shown_names
    >>> shown_names(Pairs(np.ones((1, 2)), np.zeros((1, 2)), names=("price", "time")))
    ('price', 'time')
    """
    words = feature_words(pairs) if words is None else words
    return tuple(_shown(words[name]) or name if name in words else name for name in pairs.names)


def _shown(words: dict[str, list[str]]) -> str:
    """The name of a direction by its n-grams; empty if no n-gram names it."""
    more, less = (", ".join(f"“{word}”" for word in words[end]) for end in ("more", "less"))
    if more and less:
        return f"topic {more} rather than {less}"
    return f"topic {more}" if more else f"topic not {less}" if less else ""
