"""Features of few whole numbers whose names are those of words, such as a brand: their numbers may be codes."""

import re

import numpy as np

from .pairs import Pairs
from .schemas.choice_features import HUMP
from .schemas.sides import plain_name

NAMES = re.compile(
    r"^(?:brands?|colou?r|country|city|region|state|language|gender|sex|race|ethnicity|religion|nationality|profession|"
    r"occupation|job|category|kind|type|party|operator|airline|carrier|company|manufacturer|maker|hotel|seller|store|"
    r"shop|supplier|retailer|model|mode|style|flavou?r|taste|scent|material|origin|genre|package|packaging|shape|person|"
    r"group|cluster|provider|product|system|variant|marke|farbe|land|marque|couleur|pays|marca|pa[ií]s|colore)$"
)
# How many different codes: two may be no and yes, and of many a level is an amount.
FEWEST, MOST = 3, 15


def of_codes(pairs: Pairs) -> list[str]:
    """A note on features called after words that hold a few small whole numbers.

    **Example:**

    >>> from robust_rlhf_jax.io import describe
    >>> rows = [{"brand_a": i % 3, "price_a": i, "brand_b": i % 2, "price_b": 3, "choice": "a"} for i in range(6)]
    >>> describe(rows).notes[-1]
    'brand holds the whole numbers 0 to 2, read as amounts: if they are codes, write the words and give --words.'
    """
    if pairs.kind != "numeric":
        return []
    notes = []
    sides = (np.asarray(side) for side in (pairs.chosen, pairs.rejected))
    for name, *values in zip(pairs.names, *(side.T for side in sides), strict=True):
        if not NAMES.match(plain_name(HUMP.sub("_", name))):
            continue
        codes = np.unique(np.concatenate(values))
        whole = bool((codes == np.floor(codes)).all() and codes.min() >= 0 and codes.max() <= MOST)
        if whole and FEWEST <= len(codes) <= MOST:
            notes.append(
                f"{name} holds the whole numbers {codes.min():g} to {codes.max():g}, read as amounts: if they are "
                "codes, write the words and give --words."
            )
    return notes
