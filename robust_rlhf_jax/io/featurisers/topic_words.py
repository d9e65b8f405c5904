"""Words for directions of hashed texts, which have no names of their own."""

import re
from typing import Any

import numpy as np
from jaxtyping import Float

from ..texts import Texts

# Texts that are looked at, n-grams that are counted, and n-grams that are shown at each end of a direction.
MOST_TEXTS, MOST_NGRAMS, SHOWN = 4_000, 5_000, 3
# An n-gram of fewer texts correlates by chance.
FEWEST_TEXTS = 3
# Correlations below this name nothing: of 4,000 texts and 5,000 n-grams chance alone reaches 4/√4000 = .06.
LEAST_CORRELATION = 0.1


def topic_words(texts: Texts, values: Float[np.ndarray, "T C"]) -> list[tuple[list[str], list[str]]]:
    """For each of C directions the n-grams (words and pairs of words) at its upper and at its lower end.

    corr(v_c, n) over texts t of the value v_tc of direction c and of the count n_t of the n-gram, log(1 + count) as
    the featuriser counts. An n-gram whose words another shown one has is left out.

    **Arguments:** `values` [2N, C]: of the N chosen texts, then of the N rejected ones; at most 4,000 texts, drawn
    with a fixed seed, are looked at.

    **Raises:** ImportError without scikit-learn, which the featuriser needs, too.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.io.featurisers.topic_words import topic_words
    >>> from robust_rlhf_jax.io.texts import Texts
    >>> texts = Texts([""] * 4, ["red kettle"] * 4, ["blue chair"] * 4)
    >>> topic_words(texts, np.repeat([1.0, -1.0], 4)[:, None])
    [(['red kettle'], ['blue chair'])]
    """
    said = np.array([*texts.chosen, *texts.rejected], dtype=object)
    values = np.asarray(values, np.float64)
    if len(said) > MOST_TEXTS:
        some = np.sort(np.random.default_rng(0).choice(len(said), MOST_TEXTS, replace=False))
        said, values = said[some], values[some]
    found = _correlations(said.tolist(), values)
    if found is None:
        return [([], [])] * values.shape[1]
    ngrams, correlations = found
    return [(_top(ngrams, row), _top(ngrams, -row)) for row in correlations]


def _correlations(said: list[str], values: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """N-grams [G] and their correlations [C, G]; None where the texts share none."""
    from sklearn.feature_extraction.text import CountVectorizer

    counting = CountVectorizer(
        ngram_range=(1, 2), min_df=min(FEWEST_TEXTS, len(said)), max_features=MOST_NGRAMS
    )
    try:
        fitted: Any = counting.fit_transform(said)
        counts = fitted.astype(np.float64)
    except ValueError:  # no n-gram is in so many texts
        return None
    counts.data = np.log1p(counts.data)
    n, mean = len(said), np.asarray(counts.mean(axis=0)).ravel()
    squares = np.asarray(counts.multiply(counts).mean(axis=0)).ravel()
    spread = np.sqrt(np.maximum(squares - mean**2, 0.0))
    centred = values - values.mean(axis=0)
    scale = np.outer(centred.std(axis=0), spread)
    together = np.asarray(counts.T @ centred).T / n
    with np.errstate(divide="ignore", invalid="ignore"):
        return counting.get_feature_names_out(), np.where(scale > 1e-12, together / scale, 0.0)


def _top(ngrams: np.ndarray, correlations: np.ndarray) -> list[str]:
    """The n-grams that correlate most, the longer first among equals."""
    lengths = np.array([len(ngram) for ngram in ngrams])
    order = np.lexsort((-lengths, -np.round(correlations, 6)))[: 8 * SHOWN]
    shown: list[str] = []
    for j in order:
        words = set(re.findall(r"\w+", str(ngrams[j])))
        if len(shown) == SHOWN or correlations[j] < LEAST_CORRELATION:
            break
        if not any(words & set(re.findall(r"\w+", other)) for other in shown):
            shown.append(str(ngrams[j]))
    return shown
