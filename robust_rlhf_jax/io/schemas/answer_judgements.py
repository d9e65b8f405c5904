"""What one cell says of several answers, as pairs (the better, the other, by how much) of their numbers."""

import re
from typing import Any

from ..bad_cells import shown
from ..labels import TIE, is_missing, number_in, word, yes_or_no
from .answer_names import which
from .base import structured
from .rankings import pairs_of

Pairs = list[tuple[int, int, float]]
ORDER_SIGNS = re.compile("[<>≻]")


def by_best(best: Any, called: dict[Any, int]) -> Pairs | str:
    """The best answer with each other one; a word for a tie: every two are as good."""
    if is_missing(best):
        return "names no best answer"
    if word(best) in TIE and word(best) not in called:
        return _every_two(dict.fromkeys(called.values(), 0.0))
    first = which(best, called)
    if first is None:
        return f"holds {shown(best)}, which names none of the answers"
    return [(first, i, 1.0) for i in dict.fromkeys(called.values()) if i != first]


def by_best_and_worst(best: Any, worst: Any, called: dict[Any, int], name: str) -> Pairs | str:
    """What `by_best` says, and each other one with the worst; `name`: the column of the worst."""
    judged, last = by_best(best, called), which(worst, called)
    if isinstance(judged, str) or is_missing(worst):
        return judged
    first = which(best, called)
    if first is None or last is None or first == last:
        return _not_beside(best, worst, name)
    return [*judged, *((i, last, 1.0) for _, i, _ in judged if i != last)]


def by_two(best: Any, rejected: Any, called: dict[Any, int], name: str) -> Pairs | str:
    """The best answer with the one that was rejected; `name`: the column of that."""
    first, last = which(best, called), which(rejected, called)
    if first is None or last is None or first == last:
        return (
            by_best(best, called) if first is None and last is not None else _not_beside(best, rejected, name)
        )
    return [(first, last, 1.0)]


def _not_beside(best: Any, other: Any, name: str) -> str:
    return f"holds {shown(best)} beside {shown(other)} in {name}: give two of the answers"


def by_numbers(cells: list, way: float) -> Pairs | str:
    """Every two answers by their numbers: the highest is the best if `way` is 1, the lowest if -1."""
    worth = {i: way * number for i, cell in enumerate(cells) if (number := number_in(cell)) is not None}
    return _every_two(worth) if len(worth) > 1 else "ranks fewer than two answers"


def by_flags(entries: list[dict], key: str) -> Pairs | str:
    """The only answer whose `key` is true with each other one."""
    best = [i for i, entry in enumerate(entries) if word(entry.get(key)) in ("true", "1", "yes")]
    if len(best) != 1:
        return f"has {len(best)} answers with {key} true, not one"
    return [(best[0], i, 1.0) for i in range(len(entries)) if i != best[0]]


def by_ticks(cells: list) -> Pairs | str:
    """The only answer whose cell says yes with each other one."""
    best = [i for i, cell in enumerate(cells) if is_ticked(cell)]
    if len(best) != 1:
        return f"is one of {len(best)} columns that say yes, not of one"
    return [(best[0], i, 1.0) for i in range(len(cells)) if i != best[0]]


def is_ticked(cell: Any) -> bool | None:
    """Whether a cell says yes; None if it says neither yes nor no, and False if it is missing."""
    return False if is_missing(cell) else yes_or_no(cell)


def by_ranks(cell: Any, texts: list) -> Pairs | str:
    """Every two answers by a cell with the rank of each, or of each that is there."""
    ranks = names_in(cell)
    there = [i for i, text in enumerate(texts) if text is not None]
    places = {len(texts): range(len(texts)), len(there): there}.get(len(ranks))
    if places is None or any(number_in(rank) is None for rank in ranks):
        return f"has not one rank for each of {len(there)} answers: {shown(cell)}"
    rank_of = dict(zip(places, ranks, strict=True))
    return by_numbers([rank_of.get(i) if i in there else None for i in range(len(texts))], -1.0)


def by_places(cell: Any, called: dict[Any, int]) -> Pairs | str:
    """Every two answers by an object with the rank of each."""
    ranks = ranks_by_name(cell, called)
    return (
        f"has not one rank for each answer: {shown(cell)}"
        if ranks is None
        else by_numbers([ranks.get(i) for i in range(1 + max(ranks))], -1.0)
    )


def ranks_by_name(cell: Any, called: dict[Any, int]) -> dict[int, float] | None:
    """{answer: number} of an object such as {"response_1": 2, "response_2": 1}; None of anything else."""
    found = structured(cell)
    if not isinstance(found, dict) or not found:
        return None
    ranks = {which(str(name), called): number_in(rank) for name, rank in found.items()}
    told = {place: rank for place, rank in ranks.items() if place is not None and rank is not None}
    return told if len(told) == len(found) else None


def by_order(cell: Any, called: dict[Any, int]) -> Pairs | str:
    """Every two answers that a ranking names; those between which it says nothing make no pair."""
    places = [[which(who, called) for who in group] for group in ranking_in(cell)]
    flat = [place for group in places for place in group]
    if None in flat or len(set(flat)) < max(2, len(flat)):
        return f"holds no order of the answers: {shown(cell)}"
    return _every_two(
        {place: -float(i) for i, group in enumerate(places) for place in group if place is not None}
    )


def ranking_in(cell: Any) -> list[list[str]]:
    """The names in a ranking, the best first, and equal ones together: `B>C=A`, `A<C<B`, `B, C, A`, `BCA`, or a list.

    **Example:**

    >>> ranking_in("B > C=A"), ranking_in("A<B"), ranking_in(["B", "A"])
    ([['B'], ['C', 'A']], [['B'], ['A']], [['B'], ['A']])
    """
    found = structured(cell)
    if isinstance(found, list):
        return [[str(who) for who in entry] if isinstance(entry, list) else [str(entry)] for entry in found]
    said = "" if found is None else str(found).strip()
    if re.search("[<>]=|=[<>]", said):  # not worse: no order
        return []
    ordered = re.split("<+", said)[::-1] if "<" in said else re.split("[>≻]+", said)
    if len(ordered) == 1 and "=" not in said:
        ordered = re.split(r"\s*[,;|/]\s*", said)
        ordered = ordered if len(ordered) > 1 else said.split()
    if len(ordered) == 1 and re.fullmatch("[a-hA-H]{2,8}", said):
        ordered = list(said)
    groups = ([who.strip() for who in re.split("[=~]", group) if who.strip()] for group in ordered)
    return [group for group in groups if group]


def names_in(cell: Any) -> list[str]:
    """The names in a ranking, one by one."""
    return [who for group in ranking_in(cell) for who in group]


def _every_two(worth: dict[int, float]) -> Pairs:
    return [(i, j, strength) for i, j, strength, *_ in pairs_of(list(worth), list(worth.values()))]
