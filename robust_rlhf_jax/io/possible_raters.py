"""Columns that are not used and may name who judged each pair."""

import re

from .labels import is_missing, number_in
from .pairs import Pairs
from .schemas.choice_features import HUMP
from .schemas.sides import plain_name
from .table import Table

# What may name a judge, and elsewhere something else: who wrote a prompt, or whom a text is about.
NAMES = re.compile(
    r"^(?:subject|subj|pid|sid|ppt|vp|vpn|user_?name|user_no|nick_?name|login|created_by|submitted_by|submitter|who|name|"
    r"first_name|full_name|e_?mail|recipient_e_?mail|session|session_id|ip|ip_?address|response_id|responseid|"
    r"contributor|editor|tester|tester_id|student|student_id|employee|employee_id|physician|doctor|clinician|teacher|"
    r"marker|marker_id|critic|critic_id|player_id|member|member_id|caller|case_worker|benutzer(?:name)?|bearbeiter|"
    r"mitarbeiter|teilnehmer_?(?:nummer|nr|code|kennung)|vpn?_?(?:code|nr|nummer)|kuerzel|kurzel|usuario|utilisateur|"
    r"utente|initials|device_id|client_id)$"
)
# Rows of one name on average at least, and letters of a name at most.
TIMES, LONGEST = 2, 40


def of_possible_raters(pairs: Pairs, file: Table) -> list[str]:
    """A note on columns whose names and cells may say who judged, where no column does.

    **Example:**

    >>> from robust_rlhf_jax.io import describe
    >>> row = {"response_a": "Yes.", "response_b": "No.", "winner": "a"}
    >>> describe([row | {"username": name} for name in ("ann", "ben", "ann", "ben")]).notes[-1]
    'Column username, which is ignored, holds 2 names that recur: if they are those of who judged, give --rater \
username.'
    """
    if pairs.raters is not None:
        return []
    rows = sorted({*pairs.rows.tolist()})
    found = {name: n for name in pairs.unused if (n := _people_in(file, name, rows))}
    return [
        f"Column {name}, which is ignored, holds {n:,} names that recur: if they are those of who judged, give "
        f"--rater {name if ' ' not in name else repr(name)}."
        for name, n in list(found.items())[:2]
    ]


def _people_in(file: Table, name: str, rows: list[int]) -> int:
    """How many different short names a column called so holds; 0 where they hardly recur, or are no names."""
    if name not in file.columns or not NAMES.match(plain_name(HUMP.sub("_", name))):
        return 0
    cells = file.cells(name)
    there = [cells[row] for row in rows if not is_missing(cells[row])]
    if any(isinstance(cell, dict | list | bool) or len(str(cell)) > LONGEST for cell in there):
        return 0
    if any(number % 1 for number in map(number_in, there) if number is not None):
        return 0
    people = {str(cell) for cell in there}
    return len(people) if 1 < len(people) <= len(there) / TIMES else 0
