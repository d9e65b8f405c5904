"""Cells of CSV files that a spreadsheet must not run."""

import contextlib

# The first characters that a spreadsheet takes for a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def without_formula(cell: str) -> str:
    """`cell`, behind an apostrophe where a spreadsheet would run it; numbers stay."""
    if not cell.startswith(FORMULA):
        return cell
    with contextlib.suppress(ValueError):
        float(cell)
        return cell
    return f"'{cell}"
