"""What columns of choices are called: the answer, the choice, the person, the option; and cells read plainly."""

from typing import Any

from ..table import Table
from .choice_features import HUMP, PLACES
from .sides import RATERS, by_plain_name, plain_name

CHOSEN = (
    "chosen", "choice", "chose", "choose", "selected", "picked", "is_chosen", "decision", "chosen_option",
    "chosen_alternative", "chosen_alt", "choice_alt",
)  # fmt: skip
SETS = (
    "choice_set", "choice_set_id", "set", "set_id", "choice_id", "chid", "choice_situation", "situation",
    "situation_id", "task", "task_id", "task_no", "task_number", "scenario", "scenario_id", "question", "question_id",
    "ques", "obs", "obs_id", "obsid", "observation", "observation_id", "contest", "contest_no", "contest_id", "case",
    "case_id", "pair_id", "pair", "id", "qid", "group", "group_id", "trip_id",
)  # fmt: skip
PEOPLE = (
    *RATERS, "resp", "response_id", "responseid", "subject", "case_id", "caseid", "household",
    "household_id", "user", "id",
)  # fmt: skip
# Columns whose value `chosen` repeats first of all to name the chosen option; those beyond `PLACES` remain features.
CALLED = (*PLACES, "alt_name", "alternative_name", "option_name", "mode", "brand", "product")


def by_parted_name(table: Table) -> dict[str, str]:
    """`by_plain_name`, and the columns by names in which humps part words: `taskId` as `task_id`."""
    return {plain_name(HUMP.sub("_", name)): name for name in reversed(table.names)} | by_plain_name(table)


def plain_cell(cell: Any) -> str | float:
    """1, 1.0, "1" and "Bus", "bus " alike."""
    said = str(cell).strip().casefold()
    try:
        return float(said)
    except ValueError:
        return said
