"""By what a reader of a table finds a pair in the file: its place, the file's own id, and how its texts begin."""

from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.io.labels import is_missing
from robust_rlhf_jax.io.places import places_of
from robust_rlhf_jax.spreadsheets import without_formula
from robust_rlhf_jax.terminal import harmless, readable, shortened

# Characters of a text.
BEGINNING = 80


def shown_of(pairs: Pairs) -> dict[str, list]:
    """{column: a cell for each pair}, only what the file has: its file, of several; line; id; prompt, chosen, rejected.

    **Example:**

    >>> from robust_rlhf_jax.audit.pair_columns import shown_of
    >>> from robust_rlhf_jax.io import load_pairs
    >>> rows = [{"id": "q1", "prompt": "Tea?", "chosen": "Yes, " * 20, "rejected": "No."}]
    >>> shown_of(load_pairs(rows, featuriser="format"))["chosen"][0][-12:]
    'Yes, Yes,…'
    """
    places = places_of(pairs.source, pairs.n_rows)
    found = {name: [cells[row] for row in pairs.rows.tolist()] for name, cells in places.items()}
    if pairs.ids is not None:
        found["id"] = [
            "" if is_missing(one) else without_formula(harmless(str(one))) for one in pairs.ids.tolist()
        ]
    if pairs.texts is not None:
        found |= {
            side: list(map(_beginning, getattr(pairs.texts, side)))
            for side in ("prompt", "chosen", "rejected")
        }
    return found


def _beginning(text: str) -> str:
    """In one line, however the text is broken into lines."""
    return without_formula(readable(shortened(" ".join(text[: 4 * BEGINNING].split()), BEGINNING)))
