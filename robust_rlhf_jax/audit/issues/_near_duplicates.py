"""Nearly the same two options with contradicting labels."""

import zlib
from collections import defaultdict

import numpy as np
from jaxtyping import Int

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
    hashes = {text: _hashes(text) for text in {*texts.prompt, *texts.chosen, *texts.rejected}}
    sides = list({*texts.chosen, *texts.rejected})
    signatures = dict(zip(sides, _signatures([hashes[text] for text in sides]), strict=True))
    first, second = (np.array([signatures[t] for t in side]) for side in (texts.chosen, texts.rejected))
    prompts, chosen, rejected = ([hashes[t] for t in c] for c in (texts.prompt, texts.chosen, texts.rejected))
    for i, j in _reversed_candidates(first, second):
        near = _overlap(chosen[i], rejected[j]) >= OVERLAP and _overlap(rejected[i], chosen[j]) >= OVERLAP
        same_side = _overlap(chosen[i], rejected[i]) >= OVERLAP  # then either order is near
        if (
            near
            and not same_side
            and _overlap(prompts[i], prompts[j]) >= OVERLAP
            and not _are_reversed(texts, i, j)
        ):
            yield i, j


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


def _overlap(first: np.ndarray, second: np.ndarray) -> float:
    if not len(first) and not len(second):
        return 1.0
    shared = len(np.intersect1d(first, second, assume_unique=True))
    return shared / max(len(first) + len(second) - shared, 1)
