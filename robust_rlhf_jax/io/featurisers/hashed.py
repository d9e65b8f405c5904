"""Hashed n-grams of words, weighed by rarity, in a few directions; beside them what differs of length and format."""

from typing import Any

import numpy as np

from ..texts import Texts
from .format_features import FormatFeatures

BUCKETS = 1 << 15
# Pairs that the directions are made of, at most.
MOST_PAIRS = 20_000


class HashedNgrams:
    """TF-IDF of hashed words and pairs of words, projected on the directions in which the sides of pairs differ most.

    Hashes need no vocabulary, so a file of the reward head holds the weights `idf` [buckets] and the directions
    [components, buckets], and no pickle. Directions: `TruncatedSVD` of chosen − rejected, which does not see which is
    which, of at most `MOST_PAIRS` pairs.
    """

    def __init__(self, components: int = 32, buckets: int = BUCKETS):
        self.components, self.buckets = components, buckets
        self.format = FormatFeatures()
        self.idf = self.directions = np.zeros((0, buckets), np.float32)
        self.formats = np.arange(len(self.format.names))

    @property
    def names(self) -> tuple[str, ...]:
        formats = (self.format.names[i] for i in self.formats)
        return (*formats, *(f"topic{i}" for i in range(len(self.directions))))

    def fit(self, texts: Texts) -> tuple[np.ndarray, np.ndarray]:
        from sklearn.decomposition import TruncatedSVD

        counts = [self._counts(side) for side in (texts.chosen, texts.rejected)]
        n = 2 * len(texts.chosen)
        seen = sum(np.bincount(side.indices, minlength=self.buckets) for side in counts)
        self.idf = (np.log((1.0 + n) / (1.0 + seen)) + 1.0).astype(np.float32)
        weighed = [self._weighed(counts.pop(0)) for _ in range(2)]
        difference = weighed[0] - weighed[1]
        if difference.shape[0] > MOST_PAIRS:
            some = np.random.default_rng(0).choice(difference.shape[0], MOST_PAIRS, replace=False)
            difference = difference[np.sort(some)]
        most = min(self.components, difference.shape[0] - 1, self.buckets - 1)
        if most >= 1 and difference.count_nonzero():
            with np.errstate(invalid="ignore"):  # shares of no variance
                svd: Any = TruncatedSVD(most, n_iter=4, random_state=0).fit(difference)
            alive = svd.singular_values_ > 1e-6 * svd.singular_values_[0]
            self.directions = svd.components_[alive].astype(np.float32)
        forms = self.format.fit(texts)
        self.formats = np.flatnonzero(np.any(forms[0] != forms[1], axis=0))
        chosen, rejected = (
            np.hstack([form[:, self.formats], side @ self.directions.T])
            for form, side in zip(forms, weighed, strict=True)
        )
        return chosen, rejected

    def transform(self, prompts: list[str], responses: list[str]) -> np.ndarray:
        topics = self._weighed(self._counts(responses)) @ self.directions.T
        return np.hstack([self.format.transform(prompts, responses)[:, self.formats], topics])

    def settings(self) -> dict[str, Any]:
        return {"featuriser": "hashed", "buckets": self.buckets, "components": len(self.directions)}

    def arrays(self) -> dict[str, np.ndarray]:
        return {"idf": self.idf, "directions": self.directions, "formats": self.formats}

    def _counts(self, texts: list[str]) -> Any:
        from sklearn.feature_extraction.text import HashingVectorizer

        options: dict[str, Any] = {"norm": None, "alternate_sign": False, "dtype": np.float32}
        hashing = HashingVectorizer(n_features=self.buckets, ngram_range=(1, 2), **options)
        # Once for each text: in files of votes many rows have the same ones.
        place = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        counts: Any = hashing.transform(list(place))
        counts.sum_duplicates()
        return counts if len(place) == len(texts) else counts[[place[text] for text in texts]]

    def _weighed(self, counts: Any) -> Any:
        from sklearn.preprocessing import normalize

        counts.data = (1.0 + np.log(counts.data)) * self.idf[counts.indices]
        return normalize(counts, copy=False)
