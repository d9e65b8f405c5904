"""One answer a row with a score or a rank, several rows a prompt: HelpSteer2's ratings, best of n in long form."""

import dataclasses
import re
from collections import defaultdict
from typing import Any

from ..columns import Columns
from ..table import Table
from . import choice_sets
from .base import Judged, Mapped, of_rows
from .choice_features import HUMP
from .flags_of_sides import contradict_always
from .numbers import is_marked, is_number, marked, mostly_numbers
from .plain import prompt_of
from .rankings import RANK_KEYS, pairs_of
from .ranks_and_scores import check_agreement, steps_of
from .scored_sides import FAULT, NO_FAULT
from .sides import IDS, chosen_sides, holds_texts, named, open_sides, plain_name, prompt_named, with_rater
from .words import LONGEST

NAME = "scored answers"
ORDER = 130
ANY_LABEL = True
ANSWER = (
    "response", "completion", "answer", "output", "generation", "text", "reply", "candidate", "summary",
    "model_response", "model_output", "message",
)  # fmt: skip
# What a prompt may be about, so that the same words ask another thing.
BESIDE_PROMPT = (
    "context", "input", "system", "system_prompt", "image", "image_id", "image_path", "image_url", "document",
    "article", "passage", "history", "post",
)  # fmt: skip
# Columns that name what was shown together.
SETS = (*IDS, "interaction_id", "choice_id", "qid", "group_id", "pair", "set_id", "ranking_id")
# Those that name one ranking, in which equal ranks are ties; others may name a prompt that several people ranked.
RANKED_TOGETHER = ("ranking_id", "set_id", "choice_id", "comparison_id", "interaction_id")
# The share of prompts with equal ranks that may be no rankings one after another where the others are.
MIXED = 0.1
# Scores of which none is of one quality alone.
OVERALL = ("overall_score", "score", "reward", "rating", "overall", "mos")
SCORES = (*OVERALL, "helpfulness", *RANK_KEYS)
# Names of what may be ranks.
RANKED = re.compile(r"(?:^|_)(?:ranks?|ranking|rank_order|place|placement)(?:_|$)")


def recognise(table: Table) -> bool:
    return _scored(table, None) is not None


def recognise_asked(table: Table, asked: Columns) -> bool:
    """`recognise`, with the column of scores as the caller names it."""
    return _scored(table, asked.label) is not None and not (asked.label and names_options(table, asked))


def unscored(table: Table) -> tuple[str, str, str | None] | None:
    """(prompt, answer, the column called as scores are, if any) of several answers to a prompt that nothing scores."""
    found = None if names_options(table, Columns()) else _answers_a_row(table)
    if found is None or all(
        mostly_numbers(table.cells(name)) for name in found
    ):  # Task and Response of choices
        return None
    return (*found, named(table, SCORES))


def names_options(table: Table, asked: Columns) -> bool:
    """Whether answers to no prompt are but names of options that columns of numbers describe."""
    prompt, answer = asked.prompt or prompt_named(table), named(table, ANSWER)
    if answer is None or (prompt not in (None, answer) and not mostly_numbers(table.cells(prompt))):
        return False
    cells = [cell for cell in table.some(answer) if cell is not None]
    short = all(isinstance(cell, str) and len(cell) <= LONGEST for cell in cells)
    return short and choice_sets.of_numbers(table, asked)


def map(table: Table, asked: Columns) -> Mapped:
    """Every two different answers to a prompt, the better one by score; the pair is at the row of its first answer.

    **Raises:** ValueError for scores with marks, for those that ranks contradict, for a label of which by its name less
        may be better, and for ranks of several rankings that cannot be told apart.
    """
    found = _scored(table, asked.label)
    assert found is not None
    prompt, answer, score = found
    _check_sense(score)
    if any(is_marked(cell) for cell in table.cells(score)):
        raise ValueError(marked(table, score))
    prompt = prompt_of(table, asked, (answer,)) or prompt
    prompts, answers, values = (table.cells(name) for name in (prompt, answer, score))
    way = -1.0 if plain_name(score) in RANK_KEYS else 1.0
    usable = [row for row, value in enumerate(values) if is_number(value) and answers[row] is not None]
    worth = {row: way * float(values[row]) for row in usable}
    keys = questions(table, usable, prompt, answer)
    keys, of_set = _within_sets(table, usable, keys, answers, asked.pair_id) if way < 0 else (keys, None)
    by_prompt = together(usable, keys)
    by_person = _by_person(table, usable, keys, with_rater(asked, table).rater)
    groups = by_prompt if by_person is None else by_person
    if way < 0:
        one = of_set is not None and (
            of_set == asked.pair_id or _names_rankings(table, of_set, by_prompt, answers)
        )
        groups = groups if one else _rankings_apart(groups, worth, answers, score)
        asked = dataclasses.replace(asked, pair_id=None)  # the id of a ranking is that of several pairs
    elif asked.label is None:
        _check_ranks(table, score, groups)
        _check_scores(table, score, groups)
    rows = ((row, prompts[row], pairs) for row, pairs in sorted(_judged(groups, answers, worth).items()))
    by = "ranks" if way < 0 else "scores"
    best = "the lowest is the best" if way < 0 else "the highest is the best"
    said = {"chosen": f"{answer} of two rows with the same {prompt}", "label": f"{score}: {best}"}
    asked = asked if by_person is None else with_rater(asked, table)
    notes = _notes(table.n_rows - len(usable), by_person, len(groups) > len(by_person or by_prompt))
    firsts = _firsts(table.n_rows, by_prompt)
    return of_rows(table, NAME, rows, (answer, prompt, score), said, asked, firsts, notes, by=by)


def _check_sense(score: str) -> None:
    """**Raises:** ValueError for a name of ranks or of a fault, which the highest number of is not the best."""
    name = plain_name(HUMP.sub("_", score))
    if name not in RANK_KEYS and RANKED.search(name):
        raise ValueError(
            f"column {score} may hold ranks, of which 1 is the best: call it rank if it does, or score if the highest "
            "is the best"
        )
    if re.search(rf"(?<![a-z]){FAULT}", NO_FAULT.sub("", name)):
        raise ValueError(
            f"column {score} says by its name that the lowest may be the best: turn its signs round if so, and call it "
            "score"
        )


def _firsts(n_rows: int, groups: list[list[int]]) -> list[int]:
    """The first row of each row's group; the row itself where it has none."""
    first = {row: members[0] for members in groups for row in members}
    return [first.get(row, row) for row in range(n_rows)]


def _rankings_apart(
    groups: list[list[int]], worth: dict[int, float], answers: list, name: str
) -> list[list[int]]:
    """Each ranking by itself where most of the groups in which a rank comes again are complete rankings, one after
    another.

    **Raises:** ValueError where they are not, and most of them have one answer in several places; and where many others
        may be rankings with ties, so that these may be, too.
    """
    again = [rows for rows in groups if len({worth[row] for row in rows}) < len(rows)]
    apart = {rows[0]: found for rows in again if (found := _rankings(rows, worth))}
    if 2 * len(apart) > len(again):
        if len(again) - len(apart) > MIXED * len(again):
            raise ValueError(
                f"column {name} gives several answers to a prompt one rank, which may be ties or those of another "
                "ranking: name the column of the ranking by --pair-id, or of who ranked by --rater"
            )
        return [ranking for rows in groups for ranking in apart.get(rows[0], [rows])]
    places = [{(map_key(answers[row]), worth[row]) for row in rows} for rows in again]
    torn = [rows for rows in places if len({answer for answer, _ in rows}) < len(rows)]
    if 2 * len(torn) > sum(len(rows) > 1 for rows in groups):
        raise ValueError(
            f"column {name} gives one answer to a prompt several places, as several people do: name the column of who "
            "ranked by --rater, or of the ranking by --pair-id"
        )
    return groups


def _rankings(rows: list[int], worth: dict[int, float]) -> list[list[int]]:
    """The rankings that rows hold one after another, each from 1 on, or each from 0, without a gap; [] if others."""
    found: list[list[int]] = [[]]
    for row in rows:
        if any(worth[row] == worth[other] for other in found[-1]):
            found.append([])
        found[-1].append(row)
    first = 0 if any(worth[row] == 0 for row in rows) else 1
    whole = all(
        sorted(-worth[row] for row in ranking) == [*range(first, first + len(ranking))] for ranking in found
    )
    return found if whole and all(len(ranking) > 1 for ranking in found) else []


def _judged(groups: list[list[int]], answers: list, worth: dict[int, float]) -> dict[int, list[Judged]]:
    """The pairs of different answers of each group, by the row of the first one."""
    by_row: dict[int, list[Judged]] = defaultdict(list)
    for members in groups:
        for first, second, strength, *_ in pairs_of(members, [worth[m] for m in members]):
            if answers[first] != answers[second]:
                by_row[first].append(Judged(answers[first], answers[second], strength, None, second))
    return by_row


def _names_rankings(table: Table, name: str, groups: list[list[int]], answers: list) -> bool:
    """Whether each id of a column names one ranking: it is called so, is that of one prompt, and no answer comes twice
    under it, as where several people ranked the same ones.
    """
    ids = {map_key(table.cells(name)[rows[0]]) for rows in groups}
    different = all(len({map_key(answers[row]) for row in rows}) == len(rows) for rows in groups)
    return plain_name(name) in RANKED_TOGETHER and len(ids) == len(groups) and different


def _check_ranks(table: Table, score: str, groups: list[list[int]]) -> None:
    """**Raises:** ValueError for a column of ranks that contradicts the scores."""
    rank = named(table, RANK_KEYS)
    if rank is not None:
        scores, ranks = table.cells(score), table.cells(rank)
        sets = (([scores[m] for m in members], [ranks[m] for m in members]) for members in groups)
        check_agreement(score, rank, sets, f"choose by --label {score} or --label {rank}")


def _check_scores(table: Table, score: str, groups: list[list[int]]) -> None:
    """**Raises:** ValueError for another score of as general a name that contradicts the scores in nearly all."""
    others = (named(table, (name,)) for name in OVERALL)
    for other in (name for name in others if name not in (None, score)):
        cells = [table.cells(score), table.cells(other)]
        both = ([column[m] for m in members] for column in cells for members in groups)
        steps = [step for values in both for step in steps_of(values)]
        half = len(steps) // 2
        if contradict_always(steps[:half], steps[half:]):
            raise ValueError(
                f"{score} and {other} both score the answers, and disagree in nearly all of them: choose by --label "
                f"{score} or --label {other}"
            )


def _notes(lost: int, by_person: list[list[int]] | None, apart: bool) -> tuple[str, ...]:
    """What is said of answers that make no pair: without a score, and of raters who scored one alone; and of rankings
    that are `apart`."""
    alone = sum(len(members) == 1 for members in by_person or ())
    notes = (
        f"{lost} answers have no score, and make no pair." if lost else "",
        f"{alone} answers make no pair: whoever scored them scored no other answer to the same prompt."
        if alone
        else "",
        "Ranks that begin again under one prompt are those of another ranking." if apart else "",
    )
    return tuple(note for note in notes if note)


def together(rows: list[int], keys: list) -> list[list[int]]:
    """The rows of each key."""
    groups = defaultdict(list)
    for row in rows:
        groups[keys[row]].append(row)
    return list(groups.values())


def questions(table: Table, rows: list[int], prompt: str, answer: str) -> list:
    """What each row answers: its prompt, with what stands beside it where most rows share both with another answer.

    What differs from answer to answer, or says who wrote it, is no part of the question.
    """
    columns = [n for name in BESIDE_PROMPT if (n := named(table, (name,))) not in (None, prompt, answer)]
    answers = [map_key(cell) for cell in table.cells(answer)]
    keys = [(map_key(cell),) for cell in table.cells(prompt)]
    for name in columns:
        longer = [(*key, map_key(cell)) for key, cell in zip(keys, table.cells(name), strict=True)]
        several = [group for group in together(rows, longer) if len({answers[row] for row in group}) > 1]
        if 2 * sum(len(group) for group in several) > len(rows):
            keys = longer
    return keys


def _within_sets(
    table: Table, rows: list[int], keys: list, answers: list, asked: str | None
) -> tuple[list, str | None]:
    """The keys, with the id of what was ranked together, the caller's before others, where most rows share both with
    another answer: a rank says nothing of the answers of another ranking; and the column of that id."""
    ids = (asked, *(named(table, (known,)) for known in SETS))
    for name in (name for name in ids if name is not None):
        longer = list(zip(keys, [map_key(cell) for cell in table.cells(name)], strict=True))
        sets = together(rows, longer)
        if 2 * sum(len(each) for each in sets if len({map_key(answers[row]) for row in each}) > 1) > len(
            rows
        ):
            return longer, name
    return keys, None


def _by_person(table: Table, rows: list[int], keys: list, rater: str | None) -> list[list[int]] | None:
    """The rows of each prompt and rater, whose scores are on one scale; None where most raters saw one answer alone."""
    if rater is None:
        return None
    people = [map_key(cell) for cell in table.cells(rater)]
    groups = together(rows, list(zip(keys, people, strict=True)))
    return groups if 2 * sum(len(group) for group in groups if len(group) > 1) > len(rows) else None


def map_key(cell: Any) -> str:
    return cell if isinstance(cell, str) else repr(cell)


def _scored(table: Table, asked: str | None) -> tuple[str, str, str] | None:
    """(prompt, answer, score) of a file with several answers to a prompt."""
    found, score = _answers_a_row(table), asked or named(table, SCORES)
    if found is None or score not in table.columns or score in found:
        return None
    return (*found, score) if is_number(table.first(score)) or is_marked(table.first(score)) else None


def _answers_a_row(table: Table) -> tuple[str, str] | None:
    """(prompt, answer), if prompts come again and no row has two answers."""
    prompt, answer = prompt_named(table), named(table, ANSWER)
    if prompt is None or answer in (None, prompt) or chosen_sides(table) or open_sides(table):
        return None
    again = len({map_key(cell) for cell in table.cells(prompt)}) < table.n_rows
    return (prompt, answer) if again and holds_texts(table.first(answer)) else None
