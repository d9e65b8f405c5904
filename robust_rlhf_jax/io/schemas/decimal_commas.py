"""Numbers with a decimal comma in files whose cells stand between semicolons, as spreadsheets write both in much of
Europe."""

import dataclasses
import re

from ..labels import is_missing
from ..table import Table
from .rankings import RANK_KEYS
from .sides import LABELS, RATERS, plain_name

NUMBER = re.compile(r"[+-]?\d+(?:,\d+)?")
# Three decimals may be thousands, but for those of 0,250.
CLEAR = re.compile(r"[+-]?(?:0,\d+|\d+,(?:\d{1,2}|\d{4,}))")
# Different numbers with a comma at least: fewer may be votes or ranks of two, such as 1,2 and 2,1.
FEWEST = 5
# What holds lists of votes, ranks or places, and what says who won, whose numbers a caller explains.
LISTS = re.compile(
    r"^(?:chosen|choices?|ratings|judge?ments?|positions?|ids?)$|"
    r"^(?:votes?|labels?|annotations?|preferences?|order|ranks?|ranking|places?)(?:_|$)|"
    r"_(?:ids?|votes?|order|ranking|ranks?)$"
)


def with_decimal_points(table: Table, label: str | None) -> tuple[Table, str]:
    """The table with points in such columns, and a note on them; the table itself and "" where there are none.

    **Example:**

    >>> import pathlib, tempfile
    >>> from robust_rlhf_jax.io import load_pairs
    >>> file = pathlib.Path(tempfile.mkdtemp(), "choices.csv")
    >>> rows = "".join(f"{i},5;1,{i}5\\n" for i in range(6))
    >>> _ = file.write_text("chosen_price;rejected_price\\n" + rows)
    >>> load_pairs(file).chosen[:2, 0].tolist()
    [0.5, 1.5]
    """
    if table.source.how.get("delimiter") != ";" or not table.source.only_texts:
        return table, ""
    found = [name for name in table.names if name != label and _has_commas(table, name)]
    if not found:
        return table, ""
    columns = {
        name: [cell.replace(",", ".") if isinstance(cell, str) else cell for cell in table.cells(name)]
        for name in found
    }
    listed = ", ".join(found[:4]) + (", …" if len(found) > 4 else "")
    note = f"The commas in {listed} are read as decimal points."
    return dataclasses.replace(table, columns=table.columns | columns), note


def _has_commas(table: Table, name: str) -> bool:
    """Whether all cells are numbers, and those with a comma are many and can be no thousands."""
    plain = plain_name(name)
    if plain in (*LABELS, *RATERS, *RANK_KEYS) or LISTS.search(plain):
        return False
    first = next((cell for cell in table.some(name) if not is_missing(cell)), None)
    if not isinstance(first, str) or not NUMBER.fullmatch(first.strip()):
        return False
    cells = [cell.strip() for cell in table.cells(name) if isinstance(cell, str) and cell.strip()]
    if not all(map(NUMBER.fullmatch, cells)):
        return False
    commas = {cell for cell in cells if "," in cell}
    return len(commas) >= FEWEST and any(map(CLEAR.fullmatch, commas))
