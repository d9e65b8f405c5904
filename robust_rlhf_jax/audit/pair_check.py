"""A short check that a decision is about this pair: made of its texts, or of its features where it has none."""

import hashlib

import numpy as np

from robust_rlhf_jax.io import Pairs

# There are 16⁸ values: two pairs share one by chance once in four billion. Letters alone, which no spreadsheet turns
# into a number.
LENGTH = 8
LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")


def pair_check(pairs: Pairs, i: int) -> str:
    """Eight letters that depend on what pair `i` holds, not on its place in the file.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax import Pairs
    >>> from robust_rlhf_jax.audit.pair_check import pair_check
    >>> pairs = Pairs(np.array([[1.0], [2.0]]), np.zeros((2, 1)))
    >>> pair_check(pairs, 0) == pair_check(pairs.take(np.array([1, 0])), 1), len(pair_check(pairs, 0))
    (True, 8)
    """
    texts = pairs.texts
    if texts is not None:
        sides = (texts.prompt[i], texts.chosen[i], texts.rejected[i])
        told = [str(side).encode("utf-8", "backslashreplace") for side in sides]
    else:
        with np.errstate(over="ignore"):
            told = [np.asarray(side[i], np.float32).tobytes() for side in (pairs.chosen, pairs.rejected)]
    digest = hashlib.blake2s(digest_size=LENGTH // 2)
    for part in told:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest().translate(LETTERS)
