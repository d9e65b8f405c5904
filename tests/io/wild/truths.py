"""What a file says, known since it was written, and how a reading differs from it."""

import dataclasses
import itertools
from collections import Counter

import numpy as np

from .worlds import Item, Ranking


@dataclasses.dataclass(frozen=True)
class Vote:
    """One preference; of a tie, `chosen` and `rejected` have no order. What is None is not compared."""

    chosen: object
    rejected: object
    tie: bool = False
    prompt: str | None = None
    row: int | None = None
    rater: str | None = None
    strength: float | None = None


def by_item(items: list[Item]) -> list[Vote]:
    """A row for each item, with all of its votes."""
    return [_vote(item, row, *vote) for row, item in enumerate(items) for vote in item.votes]


def by_vote(items: list[Item]) -> list[Vote]:
    """A row for each vote."""
    votes = [(item, vote) for item in items for vote in item.votes]
    return [_vote(item, row, *vote) for row, (item, vote) in enumerate(votes)]


def _vote(item: Item, row: int, rater: str, value: float) -> Vote:
    sides = (item.b, item.a) if value < 0 else (item.a, item.b)
    return Vote(*sides, value == 0, item.prompt, row, rater, abs(value))


def every_pair(items: list[Ranking]) -> list[Vote]:
    """All pairs of a ranking, the better one chosen, in the ranking's row."""
    return [
        Vote(*(item.answers[i] for i in sorted(pair, key=lambda i: -item.scores[i])), False, item.prompt, row)
        for row, item in enumerate(items)
        for pair in itertools.combinations(range(len(item.answers)), 2)
    ]


def every_pair_of_rows(items: list[Ranking]) -> list[Vote]:
    """The same, where each answer has a row of its own."""
    return [dataclasses.replace(vote, row=None) for vote in every_pair(items)]


def read_votes(pairs) -> list[Vote]:
    """A reading in the same words."""
    texts = pairs.texts
    if texts is None:
        sides = [
            [tuple(np.asarray(row, float).round(3).tolist()) for row in side]
            for side in (pairs.chosen, pairs.rejected)
        ]
        prompts = [None] * len(pairs.rows)
    else:
        sides, prompts = [texts.chosen, texts.rejected], texts.prompt
    raters = [None] * len(pairs.rows) if pairs.raters is None else [str(who) for who in pairs.raters]
    return [
        Vote(chosen, rejected, strength == 0, prompt, int(row), rater, float(strength))
        for chosen, rejected, prompt, row, rater, strength in zip(
            *sides, prompts, pairs.rows, raters, pairs.strength, strict=True
        )
    ]


def difference(truth: list[Vote], read: list[Vote], loose: bool = False, distinct: bool = False) -> str:
    """The first thing in which a reading differs from the truth, or "".

    `loose`: the texts of the truth are contained in those that were read (answers that are tool calls).
    `distinct`: how often a preference is said does not matter.
    """
    if distinct:
        truth, read = (
            _once(truth),
            _once([dataclasses.replace(vote, rater=None, strength=None) for vote in read]),
        )
    if len(truth) != len(read):
        return f"{len(truth)} preferences in the file, {len(read)} read"
    if loose:
        wrong = (pair for pair in zip(truth, read, strict=True) if not _contained(*pair))
        return next((f"{said} was read as {was}" for said, was in wrong), "")
    known = {
        field: all(getattr(vote, field) is not None for vote in truth)
        for field in ("prompt", "row", "rater", "strength")
    }
    expected, found = (Counter(_key(vote, known) for vote in votes) for votes in (truth, read))
    missing = list((expected - found).elements())
    return (
        f"{len(missing)} are not read, such as {missing[0]}; instead {next((found - expected).elements())}"
        if missing
        else ""
    )


def _once(votes: list[Vote]) -> list[Vote]:
    return list(dict.fromkeys(votes))


def _contained(said: Vote, was: Vote) -> bool:
    return (
        said.tie == was.tie
        and str(said.chosen) in str(was.chosen)
        and str(said.rejected) in str(was.rejected)
    )


def _key(vote: Vote, known: dict[str, bool]) -> tuple:
    sides = [
        side.strip() if isinstance(side, str) else tuple(round(x, 3) for x in side)
        for side in (vote.chosen, vote.rejected)
    ]
    facts = {field: getattr(vote, field) for field, there in known.items() if there}
    if isinstance(facts.get("prompt"), str):
        facts["prompt"] = facts["prompt"].strip()
    return (*(sorted(sides) if vote.tie else sides), "tie" if vote.tie else "won", *facts.values())
