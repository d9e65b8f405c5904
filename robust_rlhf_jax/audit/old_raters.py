"""The table of raters that an earlier audit left in a folder, which a file without raters does not replace."""

import csv
from pathlib import Path
from typing import Any

RATERS = "raters.csv"


def remove_old_raters(folder: Path, *kinds: Any) -> None:
    """Raters that an earlier audit left in the folder; a table of somebody else stays.

    `kinds`: the named tuples that audits write as rows.
    """
    old = folder / RATERS
    if not old.is_file():
        return
    with open(old, newline="", encoding="utf-8", errors="replace") as file:
        header = next(csv.reader(file), None)
    if header in [list(kind._fields) for kind in kinds]:
        old.unlink()
