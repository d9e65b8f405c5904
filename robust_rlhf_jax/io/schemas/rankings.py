"""Rankings of several answers, and answers with scores, in one row: UltraFeedback, Nectar, best of n, RewardBench 2."""

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..columns import Columns
from ..labels import number_in
from ..table import Table
from .base import Judged, Mapped, of_rows, records, structured
from .plain import check_asked, prompt_of
from .ranks_and_scores import check_agreement
from .sides import by_plain_name, with_rater

NAME = "ranking"
ORDER = 120
ANSWER_LISTS = (
    "completions", "answers", "responses", "generations", "candidates", "outputs", "replies", "options", "samples",
    "choices", "all_responses", "ranked_responses", "texts",
)  # fmt: skip
ANSWER_KEYS = (
    "answer", "response", "text", "completion", "content", "output", "generation", "reply", "message",
)  # fmt: skip
SCORE_KEYS = (
    "overall_score", "score", "reward", "rating", "overall", "helpfulness", "fine-grained_score", "avg_score",
)  # fmt: skip
RANK_KEYS = ("rank", "ranking_position", "place")
SCORE_LISTS = (
    "scores", "rewards", "ratings", "score", "rating", "reward_scores", "rm_scores", "overall_scores",
)  # fmt: skip
RANK_LISTS, UNCLEAR = ("ranks", "rank"), ("ranking", "rankings", "order")
BEST = {
    "scores": "the highest is the best",
    "ranks": "the lowest is the best",
    "order": "the best come first",
}
# Answers up to which all pairs are made; of more, the best with every other.
ALL_PAIRS = 10


class Found(NamedTuple):
    """`answers`: the column of lists; `by`: the column of ranks or scores, or the key beside each answer; `kind`:
    "scores", "ranks" or "order"; `key`: of the text, where answers are objects; `ranks`: the column or the key of
    ranks beside scores, which must agree.
    """

    answers: str
    by: str
    kind: str
    key: str | None
    ranks: str | None = None


def recognise(table: Table) -> bool:
    return find(table, Columns()) is not None


def reads_label(table: Table, label: str) -> bool:
    """Whether a label is one of the columns or keys of ranks and scores."""
    return find(table, Columns(label=label)) is not None


def map(table: Table, asked: Columns) -> Mapped:
    """All pairs of different answers of a row, the better one by rank (1 is the best) or by score; those of equal rank
    are ties.

    **Raises:** ValueError for a list of which it cannot be told whether it holds ranks or the order, and for scores
        that ranks contradict.
    """
    found = find(table, asked)
    assert found is not None
    of_object = found.key is not None and asked.label == found.by  # a key, and no column
    check_asked(table, dataclasses.replace(asked, label=None) if of_object else asked)
    _check_kind(table, found)
    prompt = prompt_of(table, asked, (found.answers,))
    said = {"chosen": f"answers in {found.answers}, pair by pair", "label": f"{found.by}: {BEST[found.kind]}"}
    used = dict.fromkeys((found.answers, found.by if found.key is None else None, prompt))
    reads = ("ranking", "tie") if found.by in UNCLEAR else ("tie",)
    rows = _judged_rows(table, found, prompt)
    return of_rows(
        table, _called(found), rows, used, said, with_rater(asked, table), reads=reads, by=found.kind
    )


def _judged_rows(
    table: Table, found: Found, prompt: str | None
) -> Iterator[tuple[int, Any, list[Judged] | str]]:
    """(row, its prompt, the pairs of different answers or why there are none)."""
    columns = (prompt, found.answers, found.by if found.key is None else None)
    for row, (asks, cell, by) in enumerate(zip(*(table.cells(name) for name in columns), strict=True)):
        ranked = _ranked(found, cell, by)
        pairs = [] if isinstance(ranked, str) else pairs_of(*ranked)
        differ = [pair for pair in pairs if pair.first != pair.second]
        yield row, asks, ranked if isinstance(ranked, str) else differ


def _called(found: Found) -> str:
    known = {("completions", "overall_score"): "UltraFeedback", ("answers", "rank"): "Nectar"}
    return known.get((found.answers, found.by), f"ranking by {found.kind}")


def _check_kind(table: Table, found: Found) -> None:
    """**Raises:** ValueError for ranks that could be an order, and for scores that ranks contradict."""
    if found.kind == "unclear":
        raise ValueError(
            f"{table.path}: column {found.by} could hold the rank of each answer or the answers in their order: "
            "say which, by --ranking ranks or --ranking order."
        )
    if found.kind == "scores" and found.ranks is not None:
        names = found.by, found.ranks
        check_agreement(
            *names, _sets(table, found, names), f"choose by --label {names[0]} or --label {names[1]}"
        )


def find(table: Table, asked: Columns) -> Found | None:
    """The columns of a ranking."""
    for name in _named(table, ANSWER_LISTS):
        cell = structured(table.first(name))
        entries = records(cell)
        if entries:
            key = next((k for k in ANSWER_KEYS if k in entries[0]), None)
            keys = (*SCORE_KEYS, *RANK_KEYS) if asked.label is None else (asked.label,)
            by = [
                k for k in keys if k in entries[0] and any(number_in(e.get(k)) is not None for e in entries)
            ]
            if key and by:
                kind = "ranks" if by[0] in (*RANK_KEYS, *RANK_LISTS) else "scores"
                return Found(name, by[0], kind, key, next((k for k in by if k in RANK_KEYS), None))
        if not isinstance(cell, list) or len(cell) < 2:
            continue
        unclear = asked.ranking or "unclear"
        kinds = ((SCORE_LISTS, "scores"), (RANK_LISTS, "ranks"), (UNCLEAR, unclear))
        beside = [(n, kind) for names, kind in kinds for n in _named(table, names) if _numbers(table, n)]
        if asked.label is not None:
            beside = [(n, kind) for n, kind in beside if n == asked.label]
        if beside:
            return Found(name, *beside[0], None, next((n for n, kind in beside if kind == "ranks"), None))
    return None


def _sets(table: Table, found: Found, names: tuple[str, str]) -> Iterator[tuple[list, list]]:
    """The scores and the ranks of each row."""
    if found.key is not None:
        for cell in table.cells(found.answers):
            entries = records(cell)
            yield [entry.get(names[0]) for entry in entries], [entry.get(names[1]) for entry in entries]
        return
    for cells in zip(*(table.cells(name) for name in names), strict=True):
        scores, ranks = structured(cells[0]), structured(cells[1])
        if isinstance(scores, list) and isinstance(ranks, list) and len(scores) == len(ranks):
            yield scores, ranks


def pairs_of(answers: list, worth: list[float]) -> Iterator[Judged]:
    """Every two answers; of more than `ALL_PAIRS` the best with every other."""
    n = len(answers)
    best = max(range(n), key=lambda i: worth[i])
    every = [(i, j) for i in range(n) for j in range(i + 1, n)]
    chosen = every if n <= ALL_PAIRS else [(min(best, j), max(best, j)) for j in range(n) if j != best]
    for i, j in chosen:
        gap = worth[i] - worth[j]
        yield Judged(answers[i], answers[j], 0.0 if gap == 0 else 1.0 if gap > 0 else -1.0)


def _ranked(found: Found, cell: Any, by: Any) -> tuple[list, list[float]] | str:
    """(answers, what each is worth: more is better), or why there are none."""
    if found.key is not None:
        entries = [
            e
            for e in records(cell)
            if e.get(found.key) is not None and number_in(e.get(found.by)) is not None
        ]
        answers, values = [e[found.key] for e in entries], [number_in(e[found.by]) or 0.0 for e in entries]
    else:
        answers, numbers = structured(cell), structured(by)
        if not isinstance(answers, list) or not isinstance(numbers, list) or len(answers) != len(numbers):
            return f"has not one number in {found.by} for each answer"
        if any(number_in(v) is None for v in numbers):
            return f"holds no number in {found.by}"
        values = [float(v) for v in numbers]
    if len(answers) < 2:
        return "holds fewer than two answers that are ranked"
    if found.kind == "order":
        if sorted(values) not in (list(range(len(values))), list(range(1, len(values) + 1))):
            return f"holds no order in {found.by}"
        low = int(min(values))
        worth = [0.0] * len(values)
        for place, which in enumerate(values):
            worth[int(which) - low] = -float(place)
        return answers, worth
    return answers, [-v for v in values] if found.kind == "ranks" else values


def _named(table: Table, names: tuple[str, ...]) -> list[str]:
    lower = by_plain_name(table)
    return [lower[name] for name in names if name in lower]


def _numbers(table: Table, name: str) -> bool:
    cell = structured(table.first(name))
    return isinstance(cell, list) and bool(cell) and all(number_in(v) is not None for v in cell)
