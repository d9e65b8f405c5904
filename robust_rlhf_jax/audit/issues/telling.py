"""Whether equal sides tell anything: they do for texts and embeddings, not for tables of few columns."""

from collections.abc import Iterator

import numpy as np

from robust_rlhf_jax.io import Pairs

# Rows of fewer features repeat by chance.
TELLING = 16


def has_telling_sides(pairs: Pairs) -> bool:
    return pairs.texts is not None or (pairs.kind != "arrays" and np.shape(pairs.chosen)[1] >= TELLING)


def keys_of_sides(pairs: Pairs) -> Iterator[tuple[str, str | bytes, str | bytes]]:
    """(prompt, chosen, rejected) of each pair, so that equal ones are equal: texts without case and spaces at ends."""
    if pairs.texts is not None:
        for row in zip(pairs.texts.prompt, pairs.texts.chosen, pairs.texts.rejected, strict=True):
            yield tuple(plain(text) for text in row)  # pyright: ignore[reportReturnType]
        return
    for first, second in zip(np.asarray(pairs.chosen), np.asarray(pairs.rejected), strict=True):
        yield "", first.tobytes(), second.tobytes()


def plain(text: str) -> str:
    """Without case, and with single spaces."""
    return " ".join(text.casefold().split())


def judged_by_several(pairs: Pairs, rows: list[int]) -> bool:
    """Whether `rows` are one pair of the file that as many raters judged: they may disagree, none is a duplicate."""
    if pairs.raters is None or pairs.groups is None:
        return False
    return len(set(pairs.groups[rows])) == 1 and len(set(pairs.raters[rows])) == len(rows)
