"""A first look at the pairs of a source: differences that are not finite, empty, repeated or contradicted."""

import hashlib
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from robust_rlhf_jax.rewards.streamed.config import Tell
from robust_rlhf_jax.sources import PairSource, read_ahead
from robust_rlhf_jax.sources.protocol import checked_blocks, place_in_words

# Float32 numbers of a block.
NUMBERS = 1 << 20


class Look(NamedTuple):
    """For each pair [N]: whether its difference is `empty`, all zero; `repeats` an earlier one, not empty; and whether
    its `opposite` is in the source as well: the same two options with the other label.
    """

    empty: Bool[np.ndarray, " N"]
    repeats: Bool[np.ndarray, " N"]
    opposite: Bool[np.ndarray, " N"]


def look(source: PairSource, tell: Tell | None = None) -> Look:
    """One pass. Equal differences are recognised by hashes of 8 bytes, which tell ten million pairs apart.

    **Raises:** ValueError that names the first pair with a feature that is not finite, and how many there are.
    """
    n = source.n_pairs
    forth, back, empty = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, bool)
    bad, done = [], 0
    for block in blocks_of(source):
        rows = slice(done, done + len(block))
        bad += (done + np.flatnonzero(~np.isfinite(block).all(axis=1))).tolist()
        empty[rows] = ~block.any(axis=1)
        forth[rows], back[rows] = _hashes(block), _hashes(-block)
        done = rows.stop
        if tell is not None:
            tell("first look", done, n)
    if bad:
        more = f", and {len(bad) - 1:,} more pairs have one" if len(bad) > 1 else ""
        raise ValueError(
            f"pair {bad[0]} (from 0) has a feature that is not finite{more}: leave them out, or embed them again"
            f"{place_in_words(source, bad[0])}."
        )
    first = np.zeros(n, bool)
    first[np.unique(forth, return_index=True)[1]] = True
    return Look(empty, ~first & ~empty, np.isin(forth, back) & ~empty)


def blocks_of(source: PairSource):
    """Blocks in float32, read ahead.

    **Raises:** ValueError where the source does not give the pairs that it said.
    """
    rows = max(64, NUMBERS // source.n_features)
    # Copied before the next one is read: a source may fill one array again and again.
    return read_ahead(block.astype(np.float32) for block in checked_blocks(source, rows))


def _hashes(block: Float[np.ndarray, "m k"]) -> Int[np.ndarray, " m"]:
    # 0 added: −0 and 0 are one number.
    rows = np.ascontiguousarray(block + np.float32(0))
    digests = b"".join(hashlib.blake2b(row.data, digest_size=8).digest() for row in rows)
    return np.frombuffer(digests, np.int64)
