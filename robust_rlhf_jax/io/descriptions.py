"""What was understood of a file, in words, with three pairs side by side."""

import dataclasses
import operator
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .changed_judgements import of_changed_judgements
from .codes_of_words import of_codes
from .marked_rows import of_marked_rows
from .measured_after import of_outcomes
from .missing_codes import of_missing
from .pairs import Pairs
from .possible_raters import of_possible_raters
from .rejected_work import of_rejected_work
from .schemas import Mapped
from .schemas.sides import PROMPTS
from .table import Source, Table
from .unnamed_raters import has_name

# Pairs, characters of a text, and skipped rows that are shown.
EXAMPLES, SHOWN, SKIPPED = 3, 300, 20
# Pairs of which one feature predicts every label: of fewer it may do so by chance.
FEWEST_TO_TELL = 50
# Pairs of words that may be names, and how often each must recur on average.
FEWEST_OF_NAMES, TIMES = 10, 4


@dataclasses.dataclass(frozen=True)
class Example:
    """One pair, the preferred side as chosen; without texts the sides are numbers. `label`: what the file says.

    **Example:**

    >>> from robust_rlhf_jax.io import describe
    >>> from robust_rlhf_jax.preferences import arguments_file
    >>> [(example.row, example.label) for example in describe(arguments_file()).examples]
    [(0, 'the second side won'), (1, 'a tie'), (2, 'the second side won')]
    """

    row: int
    prompt: str
    chosen: str
    rejected: str
    label: str
    rater: str | None


@dataclasses.dataclass(frozen=True)
class Description:
    """`container`, `schema`: how the file is written; `roles`: where prompt, chosen, rejected, label, rater, tie,
    weight, id and features come from; `ignored`: {column: why}; `notes`: what else to know; `examples`: up to three
    pairs; `bad`: what is wrong with the rows that are skipped, a sentence for each.

    **Example:**

    >>> from robust_rlhf_jax.io import describe
    >>> from robust_rlhf_jax.preferences import arguments_file
    >>> print(describe(arguments_file()).lines()[0])
    JSON, xz, columns: 19,324 pairs of 19,324 rows
    """

    path: Path
    container: str
    schema: str
    n_rows: int
    n_pairs: int
    n_ties: int
    n_swapped: int
    n_raters: int
    n_bad: int
    roles: dict[str, str]
    ignored: dict[str, str]
    notes: tuple[str, ...]
    examples: tuple[Example, ...]
    bad: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """The file, the sides, the label, the raters and ties, what is ignored; then a line for each note."""
        roles = self.roles
        shared = "the turns that both sides share" if any(e.prompt for e in self.examples) else "none"
        prompt = (
            f"prompt: {roles.get('prompt', shared)}; " if "rejected" in roles and self._of_texts() else ""
        )
        sides = f"chosen: {roles.get('chosen', 'none')}; rejected: {roles.get('rejected', 'none')}"
        raters = f"{_number(self.n_raters, 'rater')} ({roles['rater']})" if "rater" in roles else "no raters"
        bad = f", {_number(self.n_bad, 'row')} skipped" if self.n_bad else ""
        names = ", ".join(list(self.ignored)[:8]) + (", …" if len(self.ignored) > 8 else "")
        return [
            f"{self.container}, {self.schema}: {_number(self.n_pairs, 'pair')} of {_number(self.n_rows, 'row')}{bad}",
            f"{prompt}{sides}; features: {roles['features']}",
            f"label: {roles.get('label', 'none')}; the second side won {_number(self.n_swapped, 'time')}",
            f"{raters}; {_number(self.n_ties, 'tie')}; id: {roles.get('id', 'none')}; weight: "
            f"{roles.get('weight', 'none')}",
            f"ignored: {names or 'nothing'}",
            *(f"note: {note.rstrip('.')}." for note in self.notes),
        ]

    def __str__(self) -> str:
        blocks = [str(self.path), *(f"  {line}" for line in self.lines())]
        blocks += [f"  {name or '(unnamed)'} is ignored: {why}" for name, why in self.ignored.items()]
        blocks += [f"  skipped: {sentence}" for sentence in self.bad[:SKIPPED]]
        blocks += [f"  skipped: {len(self.bad) - SKIPPED:,} more"] if len(self.bad) > SKIPPED else []
        for example in self.examples:
            who = f", {example.rater}" if example.rater is not None else ""
            blocks += [f"row {example.row + 1} ({example.label}{who})"]
            sides = ("prompt", "chosen", "rejected") if self._of_texts() else ("chosen", "rejected")
            blocks += [f"  {side}: {getattr(example, side)}" for side in sides]
        return "\n".join(blocks)

    def _of_texts(self) -> bool:
        """Whether the file may have prompts: one of numbers has none."""
        return "prompt" in self.roles or self.roles["features"] == "texts"


def describe_pairs(pairs: Pairs, file: Table, mapped: Mapped) -> Description:
    """The description of `pairs`, which `mapped` says how to find in `file`."""
    said = (
        *_notes(pairs),
        *of_changed_judgements(pairs),
        *of_possible_raters(pairs, file),
        *of_outcomes(pairs, file, mapped),
        *of_codes(pairs),
        *of_missing(pairs, file, mapped),
        *of_rejected_work(file, pairs.rows),
        *of_marked_rows(pairs, file),
    )
    notes = (*file.notes, *mapped.notes, *said)
    return Description(
        pairs.path, _container(file.source), pairs.schema, pairs.n_rows, pairs.n_pairs, int(pairs.ties.sum()),
        int(pairs.swapped.sum()), _count_of_named(pairs), pairs.n_skipped,
        _roles(pairs, mapped), pairs.unused, notes, tuple(_examples(pairs)), _skipped(pairs),
    )  # fmt: skip


def _count_of_named(pairs: Pairs) -> int:
    return 0 if pairs.raters is None else len(np.unique(pairs.raters[has_name(pairs.raters)]))


def _container(source: Source) -> str:
    said = source.shown or source.container
    return f"{said}, {source.compression}" if source.compression else said


def _roles(pairs: Pairs, mapped: Mapped) -> dict[str, str]:
    roles = mapped.roles
    text = roles.text or (None, None, None)
    found = dict(zip(("prompt", "chosen", "rejected"), text, strict=True))
    found |= {
        "label": roles.label,
        "rater": roles.rater,
        "tie": roles.tie,
        "weight": roles.weight,
        "id": roles.id,
    }
    if mapped.origin is not None:  # columns of our own making
        made = {"prompt", "first", "second", "strength", "rater"}
        found = {
            part: None if name in made else name and name.removesuffix(" of the file")
            for part, name in found.items()
        }
        prompts = (*PROMPTS, "text", "info") if roles.text else ()
        found["prompt"] = next((name for name in mapped.used if name in prompts), None)
    sides = [pair for columns in (roles.numbers.get(pairs.kind, {}),) for pair in columns.values()]
    if roles.text is None and sides:
        found |= {
            "chosen": ", ".join(a for a, _ in sides[:4]),
            "rejected": ", ".join(b for _, b in sides[:4]),
        }
    said = {part: name for part, name in found.items() if name} | roles.said
    if "rejected" not in roles.said and "chosen" in roles.said:
        said["rejected"] = "the other one"
    names = ", ".join(pairs.names[:4]) + (", …" if len(pairs.names) > 4 else "")
    count = "texts" if pairs.kind == "texts" else f"{len(pairs.names)} {pairs.kind} ({names})"
    return said | {"features": count}


def _notes(pairs: Pairs) -> list[str]:
    notes = []
    if pairs.groups is not None:
        groups = len(np.unique(pairs.groups))
        kept = "1 group" if groups == 1 else f"{groups:,} groups"
        notes.append(f"The {len(pairs.rows):,} pairs belong to {kept} that folds keep together.")
    repeats = _repeats(pairs)
    if repeats:
        do = "repeats" if repeats == 1 else "repeat"
        why = "and no rater tells them apart" if pairs.raters is None else "by the same rater"
        notes.append(
            f"{_number(repeats, 'pair')} {do} an earlier one with the same result, {why}: drop those that are copies."
        )
    notes += _of_identical(pairs)
    notes += _of_names(pairs)
    notes += map(_telling, _predict_every_label(pairs))
    unnamed = 0 if pairs.raters is None else int((~has_name(pairs.raters)).sum())
    if unnamed:
        notes.append(f"{unnamed:,} {'pair names' if unnamed == 1 else 'pairs name'} no rater.")
    return notes


def _of_identical(pairs: Pairs) -> list[str]:
    """A note on pairs whose sides are the same: a few tell nothing, and many mean that one column was read twice."""
    if pairs.texts is not None and pairs.kind == "texts":
        same = sum(map(operator.eq, pairs.texts.chosen, pairs.texts.rejected))
        what = "text"
    else:
        a, b = np.asarray(pairs.chosen), np.asarray(pairs.rejected)
        alike = np.flatnonzero(a[:, 0] == b[:, 0])  # first, so that no array of the size of the file is made
        same = int((a[alike] == b[alike]).all(1).sum())
        what = "numbers"
    have = "has" if same == 1 else "have"
    return [f"{_number(same, 'pair')} {have} the same {what} on both sides."] if same else []


def _of_names(pairs: Pairs) -> list[str]:
    """A note on answers without prompts that are words which recur: a reward of their letters ranks no names."""
    texts = pairs.texts
    if texts is None or pairs.kind != "texts" or any(texts.prompt) or pairs.n_pairs < FEWEST_OF_NAMES:
        return []
    sides = [*texts.chosen, *texts.rejected]
    words = sorted(set(sides))
    if len(words) > len(sides) / TIMES or any(len(word.split()) > 1 for word in words):
        return []
    return [
        f"The {len(sides):,} texts are {len(words):,} words that recur, such as {words[0]!r}: if they name items, "
        "robust-rlhf leaderboard FILE --model-a COLUMN --model-b COLUMN ranks these."
    ]


def _predict_every_label(pairs: Pairs) -> list[tuple[str, bool, int]]:
    """(name, whether the chosen side has more of it, in how many pairs) of each feature of numbers that alone says who
    won in every decided pair; none of few pairs, of which one may do so by chance.
    """
    if pairs.kind != "numeric":
        return []
    decided = pairs.decided()
    if decided.n_pairs < FEWEST_TO_TELL:
        return []
    x = np.asarray(decided.preferred_differences())
    more, less = np.all(x > 0, axis=0), np.all(x < 0, axis=0)
    return [(pairs.names[j], bool(more[j]), len(x)) for j in np.flatnonzero(np.logical_or(more, less))]


def _telling(found: tuple[str, bool, int]) -> str:
    name, more, n = found
    return (
        f"{name} is {'higher' if more else 'lower'} on the chosen side in all {n:,} decided pairs, so that it predicts "
        "every label: leave it out if it was computed from the labels."
    )


def _repeats(pairs: Pairs) -> int:
    """Pairs whose texts, result and rater an earlier pair has; without raters 0 where ids or prompts say which belong
    together.
    """
    if pairs.texts is None or (pairs.raters is None and pairs.groups is not None):
        return 0
    texts = pairs.texts
    who = np.zeros(pairs.n_pairs) if pairs.raters is None else pairs.raters
    told = np.ones(pairs.n_pairs, bool) if pairs.raters is None else has_name(pairs.raters)
    rows = zip(texts.prompt, texts.chosen, texts.rejected, who.tolist(), pairs.ties.tolist(), strict=True)
    return int(told.sum()) - len({row for row, named in zip(rows, told, strict=True) if named})


def _skipped(pairs: Pairs) -> tuple[str, ...]:
    """What is wrong with each skipped row; of several bad cells the first."""
    found: dict[int, str] = {}
    for cell in sorted(pairs.bad, key=lambda cell: cell.row):
        found.setdefault(cell.row, cell.sentence)
    return tuple(found.values())


def _examples(pairs: Pairs):
    """The first pair, one of which the second side won, and a tie, if there are such; then those of other rows."""
    ties = pairs.ties
    firsts = np.unique(pairs.rows, return_index=True)[1][:EXAMPLES].tolist()
    wanted = [0, *np.flatnonzero(pairs.swapped)[:1].tolist(), *np.flatnonzero(ties)[:1].tolist(), *firsts]
    of_rows: dict[int, int] = {}
    for i in wanted:
        of_rows.setdefault(int(pairs.rows[i]), i)
    for row, i in list(of_rows.items())[:EXAMPLES]:
        label = "a tie" if ties[i] else "the second side won" if pairs.swapped[i] else "the first side won"
        rater = None if pairs.raters is None or not has_name(pairs.raters[[i]])[0] else str(pairs.raters[i])
        yield Example(row, *_shown_sides(pairs, i), label, rater)


def _shown_sides(pairs: Pairs, i: int) -> tuple[str, str, str]:
    """(prompt, chosen, rejected) of a pair, as texts."""
    if pairs.texts is not None:
        return _cut(pairs.texts.prompt[i]), _cut(pairs.texts.chosen[i]), _cut(pairs.texts.rejected[i])
    return (
        "",
        _vector(np.asarray(pairs.chosen)[i], pairs.names),
        _vector(np.asarray(pairs.rejected)[i], pairs.names),
    )


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def _vector(values: np.ndarray, names: Sequence[str]) -> str:
    shown = ", ".join(
        f"{name} {value:.4g}" for name, value in zip(names[:4], np.asarray(values)[:4], strict=False)
    )
    return shown + (", …" if len(names) > 4 else "")


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}" + ("" if count == 1 else "s")
