"""Nearly the same two options with contradicting labels."""

import zlib
from collections import defaultdict
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse import csr_array

from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.io.texts import Texts

from .base import Batch, Issue
from .telling import contradicted, has_telling_sides, judged_by_several, plain

ORDER = 50

# Tables of two min-hashes each; sides whose words overlap by this share are near (Jaccard), features by this distance.
TABLES, ROWS = 8, 2
OVERLAP, DISTANCE = 0.8, 0.05
BITS = 12
# Buckets that hold more are no duplicates but a habit.
CROWD = 64
PRIME = (1 << 31) - 1
# Pairs of texts whose words are compared at once: some ten million words in memory.
AT_ONCE = 1 << 16


def near_duplicates(batch: Batch) -> Issue | None:
    """Score: P(label is honest) of the two at most ½, flagged where another pair is nearly the reverse.

    Texts: prompts, and each side with the other's opposite side, share 4 of 5 of their words (found by min-hashing).
    Embeddings: both sides within 5 % of a typical distance. A cleaned copy drops the one that the fits believe less.
    Exact reversals are `both_orders`. None for tables of few features.
    """
    pairs = batch.pairs
    if not has_telling_sides(pairs):
        return None
    found = _near_texts(pairs.texts) if pairs.texts is not None else _near_rows(pairs)
    n, margins = pairs.n_pairs, batch.held_out.margins
    score, drop, twin = np.ones(n), np.zeros(n, bool), np.full(n, -1)
    for i, j in found:
        if pairs.ties[i] or pairs.ties[j] or judged_by_several(pairs, [i, j]):
            continue
        worse = i if margins[i] < margins[j] else j
        drop[worse] = True
        for a, b in ((i, j), (j, i)):
            score[a] = min(score[a], 0.5 if a != worse else 0.25)
            twin[a] = b
    return contradicted(
        "near_duplicates",
        pairs,
        score,
        drop,
        twin,
        says="is nearly the same pair with the opposite result.",
        what="nearly repeat another pair with the opposite result",
    )


def _near_texts(texts: Texts):
    # Once for each text: in files of votes many rows have the same ones.
    distinct = list({*texts.prompt, *texts.chosen, *texts.rejected})
    number = {text: place for place, text in enumerate(distinct)}
    hashes = [_hashes(text) for text in distinct]
    prompts, chosen, rejected = (
        np.array([number[text] for text in column], int)
        for column in (texts.prompt, texts.chosen, texts.rejected)
    )
    signatures, words = _signatures(hashes), _Words.of(hashes)
    candidates = _reversed_candidates(signatures[chosen], signatures[rejected])
    rows = np.array(candidates, int).reshape(-1, 2)
    # Each filter leaves far fewer rows to the next.
    for one, other in ((chosen, rejected), (rejected, chosen), (prompts, prompts)):
        rows = rows[words.overlap(one[rows[:, 0]], other[rows[:, 1]]) >= OVERLAP]
    # Else either order is near.
    rows = rows[words.overlap(chosen[rows[:, 0]], rejected[rows[:, 0]]) < OVERLAP]
    return [(i, j) for i, j in rows.tolist() if not _are_reversed(texts, i, j)]


def _are_reversed(texts: Texts, i: int, j: int) -> bool:
    """Whether two pairs are each other's reverse to the letter."""
    first, second = (tuple(map(plain, (texts.chosen[row], texts.rejected[row]))) for row in (i, j))
    return first == second[::-1]


def _near_rows(pairs: Pairs):
    """Of features without texts, by signs of projections."""
    chosen, rejected = (np.asarray(side, np.float32) for side in (pairs.chosen, pairs.rejected))
    centre, p = np.median(chosen, axis=0), chosen.shape[1]
    planes = np.random.default_rng(0).normal(size=(p, TABLES * BITS)).astype(np.float32)
    weights = (1 << np.arange(BITS)).astype(np.int64)

    def signature(side):
        signs = ((side - centre) @ planes > 0).reshape(-1, TABLES, BITS)
        return signs @ weights

    typical = np.median(np.linalg.norm(chosen - centre, axis=1))
    for i, j in _reversed_candidates(signature(chosen), signature(rejected)):
        gaps = np.linalg.norm(chosen[i] - rejected[j]), np.linalg.norm(rejected[i] - chosen[j])
        if 0 < max(gaps) <= DISTANCE * typical < np.linalg.norm(chosen[i] - rejected[i]):
            yield i, j


def _reversed_candidates(first: Int[np.ndarray, "T N"], second: Int[np.ndarray, "T N"]):
    """Rows i < j for which, in some table, first[i] = second[j] and second[i] = first[j]; each once."""
    seen = set()
    for table in range(first.shape[1]):
        buckets = defaultdict(list)
        keys = list(zip(first[:, table].tolist(), second[:, table].tolist(), strict=True))
        for row, key in enumerate(keys):
            buckets[key].append(row)
        for row, (a, b) in enumerate(keys):
            twins = buckets.get((b, a), ()) if a != b else ()
            if 0 < len(twins) <= CROWD:
                seen.update((row, other) for other in twins if row < other)
    return sorted(seen)


def _hashes(text: str) -> np.ndarray:
    return np.fromiter(
        {zlib.crc32(w.encode(errors="replace")) % PRIME for w in plain(text).split()}, np.int64
    )


def _signatures(sets: list[np.ndarray]) -> np.ndarray:
    """[N, TABLES]: min-hashes under fixed random maps h ↦ (ah + b) mod p, `ROWS` of them in one number."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(1, PRIME, (2, TABLES * ROWS))
    signatures = np.zeros((len(sets), TABLES * ROWS), np.int64)
    for row, hashes in enumerate(sets):
        if len(hashes):
            signatures[row] = ((hashes[:, None] * (a >> 8)[None] + b) % PRIME).min(axis=0)
    folded = signatures.reshape(-1, TABLES, ROWS)
    return folded[..., 0] * PRIME + folded[..., 1]


class _Words(NamedTuple):
    """Which words each text has [texts, words], and how many."""

    has: csr_array
    count: Int[np.ndarray, " texts"]

    @classmethod
    def of(cls, hashes: list[np.ndarray]) -> "_Words":
        count = np.array([len(each) for each in hashes], int)
        together = np.concatenate([np.zeros(0, np.int64), *hashes])
        _, word = np.unique(together, return_inverse=True)
        begins = np.concatenate([[0], np.cumsum(count)])
        shape = (len(hashes), int(word.max(initial=0)) + 1)
        return cls(csr_array((np.ones(len(word), np.int32), word, begins), shape=shape), count)

    def overlap(self, first: Int[np.ndarray, " M"], second: Int[np.ndarray, " M"]) -> Float[np.ndarray, " M"]:
        """Jaccard's of the words of texts by number; 1 of two without words."""
        blocks = (slice(begin, begin + AT_ONCE) for begin in range(0, len(first), AT_ONCE))
        shared = [np.asarray(self.has[first[b]].multiply(self.has[second[b]]).sum(axis=1)) for b in blocks]
        common = np.concatenate([np.zeros(0, int), *shared])
        either = self.count[first] + self.count[second] - common
        return np.where(either > 0, common / np.maximum(either, 1), 1.0)
