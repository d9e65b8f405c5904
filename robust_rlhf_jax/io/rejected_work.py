"""Rows of a platform that say of themselves that who sent the work rejected it (MTurk, Toloka)."""

from jaxtyping import Int
from numpy import ndarray

from .labels import word
from .schemas.sides import exact_last
from .table import Table

STATUS = ("assignmentstatus", "assignment:status")
REJECTED = "rejected"


def of_rejected_work(file: Table, rows: Int[ndarray, " N"]) -> list[str]:
    """A note on how many of the `rows` that pairs come from were rejected; nothing of a file that does not say so.

    **Example:**

    >>> from robust_rlhf_jax.io import describe
    >>> row = {"chosen": "Yes.", "rejected": "No.", "AssignmentStatus": "Rejected"}
    >>> describe([row, row | {"chosen": "So.", "AssignmentStatus": "Approved"}]).notes[-1]
    '1 row was rejected (AssignmentStatus) and counts like the others: leave it out if its answer is not to count.'
    """
    column = next((name for name in exact_last(file) if name.strip().casefold() in STATUS), None)
    if column is None:
        return []
    cells = file.cells(column)
    n = sum(word(cells[row]) == REJECTED for row in {*rows.tolist()})
    if not n:
        return []
    return [
        f"1 row was rejected ({column}) and counts like the others: leave it out if its answer is not to count."
        if n == 1
        else f"{n:,} rows were rejected ({column}) and count like the others: leave them out if their answers are not "
        "to count."
    ]
