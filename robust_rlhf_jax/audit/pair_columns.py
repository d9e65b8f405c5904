"""The columns by which a reader finds a pair in the file: its place, the file's own id, and how its texts begin."""

import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Int

from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.io.labels import is_missing
from robust_rlhf_jax.io.places import places_of
from robust_rlhf_jax.spreadsheets import without_formula
from robust_rlhf_jax.terminal import beginning, harmless, shortened

# Characters of a text.
BEGINNING = 80


def shown_of(pairs: Pairs) -> dict[str, list]:
    """{column: a cell for each pair}, only what the file has: its file, of several; line; id; prompt, chosen, rejected.

    **Example:**

    >>> from robust_rlhf_jax.audit.pair_columns import shown_of
    >>> from robust_rlhf_jax.io import load_pairs
    >>> rows = [{"id": "q1", "prompt": "Tea?", "chosen": "Yes, " * 20, "rejected": "No."}]
    >>> shown_of(load_pairs(rows, featuriser="format"))["chosen"][0][-10:]
    'Yes, Yes,…'
    """
    found = _in_file(pairs, np.arange(pairs.n_pairs))
    if "id" in found:
        found["id"] = list(map(without_formula, found["id"]))
    if pairs.texts is not None:
        found |= {
            side: [without_formula(beginning(text, BEGINNING)) for text in getattr(pairs.texts, side)]
            for side in ("prompt", "chosen", "rejected")
        }
    return found


def found_at(pairs: Pairs, which: Int[ArrayLike, " M"]) -> list[str]:
    """Where each of `which` pairs stands, as a reader would look for it: "b.jsonl, line 12, id q7"; "" where only its
    row is known.

    **Example:**

    >>> from robust_rlhf_jax import Pairs
    >>> from robust_rlhf_jax.audit.pair_columns import found_at
    >>> found_at(Pairs([[1.0], [2.0]], [[0.0], [1.0]], ids=["q1", None]), [1, 0])
    ['', 'id q1']
    """
    which = np.asarray(which, int)
    columns = _in_file(pairs, which)
    words = {"file": "{}", "line": "line {}", "id": "id {}"}
    return [
        ", ".join(
            words[name].format(shortened(str(columns[name][n]), BEGINNING))
            for name in words
            if name in columns and columns[name][n] != ""
        )
        for n in range(len(which))
    ]


def _in_file(pairs: Pairs, which: Int[np.ndarray, " M"]) -> dict[str, list]:
    """The columns of where pairs stand, and their ids, "" where one is missing."""
    places = places_of(pairs.source, pairs.n_rows)
    rows = np.asarray(pairs.rows)[which].tolist()
    found = {name: [cells[row] for row in rows] for name, cells in places.items()}
    if pairs.ids is not None:
        ids = np.asarray(pairs.ids)[which].tolist()
        found["id"] = ["" if is_missing(one) else harmless(str(one)) for one in ids]
    return found
