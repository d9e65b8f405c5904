"""`RaterTable`: what each rater is, in numbers and in a word."""

import csv
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from robust_rlhf_jax.io.given_arrays import other_parts, same_parts
from robust_rlhf_jax.spreadsheets import without_formula
from robust_rlhf_jax.terminal import counted
from robust_rlhf_jax.unfinished import whole_path

from .kinds import KINDS


class Rater(NamedTuple):
    """One row of a `RaterTable`; `low` and `high` are the ends of 95 % intervals.

    | field | meaning |
    |---|---|
    | `name`, `pairs` | who, and how many pairs they judged |
    | `agreement`, `agreement_low`, `agreement_high` | share of labels that a fit to the others predicts; ties count \
one half |
    | `reliability`, `reliability_low`, `reliability_high` | w: 1 as the crowd, 0 a coin, below 0 the opposite |
    | `p_agreement`, `p_taste` | of the score tests along θ̂ and in all directions, corrected by Holm |
    | `kind`, `probability` | one of `KINDS`, and how likely it is that the rater is bad (`BAD`) |
    | `differs_in` | features whose weight is reversed for a rater of other taste |
    | `weight` | what the rater counts in a fit, 1 without evidence |

    **Example:**

    >>> from robust_rlhf_jax.raters import Rater
    >>> Rater("ann", 40, 0.9, 0.8, 0.97, 1.2, 0.7, 1.9, 1.0, 1.0, "attentive", 0.0, (), 1.0).kind
    'attentive'
    """

    name: str
    pairs: int
    agreement: float
    agreement_low: float
    agreement_high: float
    reliability: float
    reliability_low: float
    reliability_high: float
    p_agreement: float
    p_taste: float
    kind: str
    probability: float
    differs_in: tuple[str, ...]
    weight: float


class RaterTable(NamedTuple):
    """`rows`, one `Rater` each in the order of their names; `weights` [N] of the pairs.

    **Example:**

    >>> from robust_rlhf_jax import preferences, raters
    >>> table = raters.rate_raters(preferences.rail_pairs())
    >>> len(table.rows), float(table.weights.min()), table.counts()["contrary"]
    (235, 1.0, 0)
    """

    rows: tuple[Rater, ...]
    weights: Float[np.ndarray, " N"]

    __eq__, __ne__ = same_parts, other_parts

    def counts(self) -> dict[str, int]:
        """How many raters are of each kind."""
        return {kind: sum(row.kind == kind for row in self.rows) for kind in KINDS}

    def __repr__(self) -> str:
        """How many raters are of each kind: the rows are as many as the raters."""
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in self.counts().items() if count)
        return (
            f"RaterTable({counted(len(self.rows), 'rater')} of {counted(len(self.weights), 'pair')}: {kinds})"
        )

    def save(self, path: str | os.PathLike) -> None:
        """Write the rows as CSV, whole or not at all; names that a spreadsheet would compute begin with an apostrophe.

        **Raises:** OSError if the file cannot be written.
        """
        with (
            whole_path(Path(path)) as scratch,
            open(scratch, "w", newline="", encoding="utf-8", errors="backslashreplace") as file,
        ):
            writer = csv.writer(file)
            writer.writerow(Rater._fields)
            writer.writerows([_cell(value) for value in row] for row in self.rows)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return without_formula(", ".join(value) if isinstance(value, tuple) else str(value))
