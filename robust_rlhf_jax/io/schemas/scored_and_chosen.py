"""An answer a row with a score or a rank, and a column that says which one was chosen: read by the numbers if the two
agree."""

from ..columns import Columns
from ..table import Table
from . import flagged_answers, scored_answers
from .base import Mapped
from .scores_and_best import check_best

NAME = "scores beside the chosen answer"
ORDER = 127


def recognise(table: Table) -> bool:
    return scored_answers.recognise(table) and flagged_answers.recognise(table)


def map(table: Table, asked: Columns) -> Mapped:
    """**Raises:** ValueError where another answer to a prompt has better numbers than the chosen one."""
    made = scored_answers.map(table, asked)
    check_best(made, flagged_answers.map(table, asked))
    return made
