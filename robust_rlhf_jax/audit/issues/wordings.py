"""The words of the texts of pairs, whatever their labels: read once for a file; `take` gives those of a part."""

import dataclasses
import zlib
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse import csr_array

from robust_rlhf_jax.io.texts import Texts

PRIME = (1 << 31) - 1
# Pairs of texts whose words are compared at once: some ten million words in memory.
AT_ONCE = 1 << 16


@dataclasses.dataclass(frozen=True)
class Wordings:
    """Texts and words by their numbers; texts are the same but for case and spaces.

    | field | shape | meaning |
    |---|---|---|
    | `of` | [N, 3] | the text that is the prompt, the chosen and the rejected side of each pair |
    | `has` | [texts, words] | 1 where a text has a word |
    | `hashes` | [words] | in [0, 2³¹ − 1) |

    **Example:**

    >>> from robust_rlhf_jax.audit.issues.wordings import Wordings
    >>> from robust_rlhf_jax.io import Texts
    >>> said = Wordings.read(Texts(["Hi", "Bye"], ["Hello you", "So long"], ["hello  You", "No"]))
    >>> said.of.tolist(), said.has.sum(axis=1).tolist(), said.take([1]).of.tolist()
    ([[0, 2, 2], [1, 3, 4]], [1, 1, 2, 2, 1], [[1, 3, 4]])
    """

    of: Int[np.ndarray, "N 3"]
    has: csr_array
    hashes: Int[np.ndarray, " words"]

    @classmethod
    def read(cls, texts: Texts) -> "Wordings":
        numbers, words = {}, {}
        columns = [
            [numbers.setdefault(plain(text), len(numbers)) for text in column]
            for column in (texts.prompt, texts.chosen, texts.rejected)
        ]
        said = [
            np.fromiter({words.setdefault(word, len(words)) for word in text.split()}, np.int64)
            for text in numbers
        ]
        begins = np.cumsum([0, *map(len, said)])
        word = np.concatenate([np.zeros(0, np.int64), *said])
        has = csr_array((np.ones(len(word), np.int32), word, begins), shape=(len(said), len(words)))
        has.sort_indices()
        hashes = np.array([zlib.crc32(word.encode(errors="replace")) % PRIME for word in words], np.int64)
        return cls(np.array(columns, int).T, has, hashes)

    def take(self, rows: Int[np.ndarray, " M"]) -> "Wordings":
        """Those of some pairs."""
        return dataclasses.replace(self, of=self.of[rows])

    @property
    def count(self) -> Int[np.ndarray, " texts"]:
        """How many different words each text has."""
        return np.diff(self.has.indptr)

    def pairs_with(self) -> Int[np.ndarray, " words"]:
        """How many pairs have each word, in either side or in both."""
        found = np.zeros(len(self.hashes), int)
        for rows in _blocks(len(self.of)):
            _, chosen, rejected = self.of[rows].T
            found += np.bincount((self.has[chosen] + self.has[rejected]).indices, minlength=len(found))
        return found

    def overlap(self, first: Int[np.ndarray, " M"], second: Int[np.ndarray, " M"]) -> Float[np.ndarray, " M"]:
        """Jaccard's of the words of texts by number; 1 of two without words."""
        shared = [
            np.asarray(self.has[first[rows]].multiply(self.has[second[rows]]).sum(axis=1))
            for rows in _blocks(len(first))
        ]
        common = np.concatenate([np.zeros(0, int), *shared])
        either = self.count[first] + self.count[second] - common
        return np.where(either > 0, common / np.maximum(either, 1), 1.0)


def plain(text: str) -> str:
    """The text without case and with single spaces."""
    return " ".join(text.casefold().split())


def _blocks(n: int) -> Iterator[slice]:
    return (slice(begin, begin + AT_ONCE) for begin in range(0, n, AT_ONCE))
