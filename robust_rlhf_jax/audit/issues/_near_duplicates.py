"""Nearly the same two options with contradicting labels."""

from collections import defaultdict

import numpy as np
from jaxtyping import Int

from robust_rlhf_jax.io import Pairs

from .base import Batch, Issue
from .contradicted_pairs import contradicted, has_telling_sides, judged_by_several
from .wordings import PRIME, Wordings

ORDER = 50

# Tables of two min-hashes each; sides whose words overlap by this share are near (Jaccard), features by this distance.
TABLES, ROWS = 8, 2
OVERLAP, DISTANCE = 0.8, 0.05
BITS = 12
# Larger buckets are a habit of the file, and are not searched for duplicates.
CROWD = 64


def near_duplicates(batch: Batch) -> Issue | None:
    """Score: P(label is honest) of the two at most ½, flagged where another pair is nearly the reverse.

    Texts: prompts, and each side with the other's opposite side, share 4 of 5 of their words (found by min-hashing).
    Embeddings: both sides within 5 % of a typical distance. A cleaned copy drops the one that the fits believe less.
    Exact reversals are `both_orders`. None for tables of few features.
    """
    pairs = batch.pairs
    if not has_telling_sides(pairs):
        return None
    found = _near_texts(batch.wordings) if batch.wordings is not None else _near_rows(pairs)
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


def _near_texts(said: Wordings):
    (prompts, chosen, rejected), signatures = said.of.T, _signatures(said)
    candidates = _reversed_candidates(signatures[chosen], signatures[rejected])
    rows = np.array(candidates, int).reshape(-1, 2)
    # Each filter leaves far fewer rows to the next.
    for one, other in ((chosen, rejected), (rejected, chosen), (prompts, prompts)):
        rows = rows[said.overlap(one[rows[:, 0]], other[rows[:, 1]]) >= OVERLAP]
    # Else either order is near.
    i, j = rows[said.overlap(chosen[rows[:, 0]], rejected[rows[:, 0]]) < OVERLAP].T
    reversed_ = (chosen[i] == rejected[j]) & (rejected[i] == chosen[j])
    return list(zip(i[~reversed_].tolist(), j[~reversed_].tolist(), strict=True))


def _near_rows(pairs: Pairs):
    """Candidates by features, for pairs without texts: by signs of projections."""
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


def _signatures(said: Wordings) -> Int[np.ndarray, "texts tables"]:
    """Min-hashes of the words of each text under fixed random maps h ↦ (ah + b) mod p, `ROWS` of them in one number."""
    a, b = np.random.default_rng(0).integers(1, PRIME, (2, TABLES * ROWS))
    signatures = np.zeros((len(said.count), TABLES * ROWS), np.int64)
    there = said.count > 0
    begins = said.has.indptr[:-1][there]
    for place, (factor, more) in enumerate(zip(a >> 8, b, strict=True)):
        of_words = (said.hashes * factor + more) % PRIME
        signatures[there, place] = np.minimum.reduceat(of_words[said.has.indices], begins)
    folded = signatures.reshape(-1, TABLES, ROWS)
    return folded[..., 0] * PRIME + folded[..., 1]
