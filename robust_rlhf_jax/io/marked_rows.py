"""Rows that say of themselves that they may be no judgements: practice, attention checks, previews, exclusions."""

import re

from .bad_cells import shown
from .labels import is_missing, word, yes_or_no
from .pairs import Pairs
from .schemas.choice_features import HUMP
from .schemas.sides import plain_name
from .table import Table

# Columns of yes and no, of which the rows with yes, or those with no, may have to go.
GO_IF_YES = re.compile(
    r"^(?:(?:is|was|to_be|to)_)?(?:exclude|excluded|practice|practice_trial|training_trial|attention_?check|catch_?trial|"
    r"test_?question|gold_?question|gold|honey_?pot|screening_question|spam|spammer|bot|deleted|removed|discard|discarded|skip|"
    r"skipped|invalid|ignore|ignored|filtered_out|failed_(?:attention|check|attention_checks?)|preview|test_mode|"
    r"low_quality|duplicate|timed_out)$"
)
GO_IF_NO = re.compile(
    r"^(?:(?:is|was)_)?(?:valid|(?:passed|pass)_(?:attention|check|checks|qc|attention_checks?|quality_(?:check|control))|"
    r"attention_(?:check_)?passed|finished|completed|complete|approved|include|included|keep|consent|consented|usable)$"
)
# Columns of words, and those that say so.
KINDS = re.compile(
    r"^(?:status|distribution_?channel|trial_type|trial_kind|phase|block|block_type|task_type|item_type|row_type|"
    r"response_type|question_type|review_status|annotation_status|state)$"
)
WORDS = {
    "survey preview", "preview", "test", "spam", "practice", "practise", "training", "tutorial", "warmup",
    "survey test", "warm up", "attention check", "attention", "catch", "catch trial", "gold", "screening", "rejected",
    "discarded", "excluded", "deleted", "invalid", "draft", "example", "instructions", "demo",
}  # fmt: skip


def of_marked_rows(pairs: Pairs, file: Table) -> list[str]:
    """A note for each column that marks some rows that pairs come from, and not all.

    **Example:**

    >>> from robust_rlhf_jax.io import describe
    >>> row = {"chosen": "Yes.", "rejected": "No.", "excluded": True}
    >>> describe([row, row | {"chosen": "So.", "excluded": False}]).notes[-1]
    '1 of 2 rows is marked by column excluded (True) and counts like the others: leave it out if it is no judgement.'
    """
    rows = sorted({*pairs.rows.tolist()})
    notes = []
    for name in (name for name in pairs.unused if name in file.columns and _may_mark(name)):
        cells = file.cells(name)
        marked = _marked(name, [cells[row] for row in rows if not is_missing(cells[row])])
        if marked:
            what, those = shown(marked[0]), "them" if len(marked) > 1 else "it"
            verb, count = ("are", "count") if len(marked) > 1 else ("is", "counts")
            none = "they are no judgements" if len(marked) > 1 else "it is no judgement"
            notes.append(
                f"{len(marked):,} of {len(rows):,} rows {verb} marked by column {name} ({what}) and {count} like the "
                f"others: leave {those} out if {none}."
            )
    return notes


def _may_mark(name: str) -> bool:
    plain = plain_name(HUMP.sub("_", name))
    return any(pattern.match(plain) for pattern in (GO_IF_YES, GO_IF_NO, KINDS))


def _marked(name: str, cells: list) -> list:
    """The cells that say that a row may have to go, where others say that it stays."""
    plain = plain_name(HUMP.sub("_", name))
    told = [yes_or_no(cell) for cell in cells]
    if GO_IF_YES.match(plain) and {*told} == {True, False}:
        return [cell for cell, yes in zip(cells, told, strict=True) if yes]
    if GO_IF_NO.match(plain) and {*told} == {True, False}:
        return [cell for cell, yes in zip(cells, told, strict=True) if not yes]
    found = [cell for cell in cells if KINDS.match(plain) and word(cell) in WORDS]
    return found if len(found) < len(cells) else []
