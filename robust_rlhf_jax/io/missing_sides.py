"""What to say of a file in which no two sides were found: what its columns could be, and the flag that helps."""

import re

from .bad_cells import shown
from .columns import Columns
from .labels import TIE, is_missing, word
from .schemas import numbers_of_two_sides
from .schemas.answer_names import answers_of
from .schemas.base import records
from .schemas.named_answers import with_lists
from .schemas.numbers import NO_FEATURE, NUMERIC, is_number, mostly_numbers
from .schemas.scored_answers import unscored
from .schemas.sides import LABELS, by_plain_name, chosen_sides, holds_texts, open_sides
from .schemas.wide_names import counted_from_zero, unnamed, with_none
from .table import Table

GENERAL = (
    "give features as those, or texts as chosen and rejected, or name the columns of the sides by --chosen and "
    "--rejected; of choices, --label names the column that says which option was chosen; with one option a row, "
    "--pair-id that of the choice; with one choice a row, --alternatives the options that columns are called after"
)
# What readers call columns without a name.
UNNAMED = re.compile(r"column \d+|Unnamed: \d+")
# How much of a column's name is said, which may be a whole question.
LONGEST = 40
MODELS = (("model_a", "model_b"), ("model_1", "model_2"), ("model1", "model2"), ("winner", "loser"))
# Columns of what plays against each other, as `plain_name` has them.
PLAYERS = (
    ("system_a", "system_b"), ("system_1", "system_2"), ("white", "black"), ("home", "away"),
    ("home_team", "away_team"), ("hometeam", "awayteam"), ("player_1", "player_2"), ("player_a", "player_b"),
    ("player1", "player2"), ("team_1", "team_2"), ("team_a", "team_b"), ("team1", "team2"),
)  # fmt: skip
DIFFERENCE = re.compile(r"^(?:delta|diff|difference)[\s_.\-]|[\s_.\-](?:delta|diff|difference)$", re.I)


def advice(table: Table) -> str:
    """A sentence without the file's name."""
    kinds = (
        _title,
        _broken,
        _words,
        _options,
        _zero,
        _none,
        _votes,
        _differences,
        _other_sides,
        _named_columns,
        _listed,
        _nested,
        _scores,
        _objects,
    )
    return next((said for kind in kinds if (said := kind(table)) is not None), None) or _general(table)


def _title(table: Table) -> str | None:
    """A line above the header, in which a spreadsheet has the title."""
    called = [name for name in table.names if name and not UNNAMED.fullmatch(name)]
    if len(called) != 1 or (len(table.names) == 1 and 2 * len(table.bad) < table.n_rows):
        return None
    return (
        f" has one column with a name, {shown(called[0])}: if that is a title, leave out the lines above the names of "
        "the columns."
    )


def _broken(table: Table) -> str | None:
    """Rows that all have more or fewer cells than there are names."""
    rows = {cell.row for cell in table.bad}
    if not rows or len(rows) < table.n_rows:
        return None
    return (
        f": {table.bad[0].sentence} ({len(rows)} of {table.n_rows} rows are unusable): write a name for each cell, and "
        "quotation marks around texts with what stands between cells."
    )


def _words(table: Table) -> str | None:
    words = next((name for name in table.names if _of_words(table, name)), None)
    return words and (
        f": column {words} holds {shown(table.first(words))} and the like: write numbers with a decimal point and no "
        "other marks, and 1 and 0 for true and false; or make features of a few words by --words."
    )


def _of_words(table: Table, name: str) -> bool:
    """Whether a feature of both sides holds no numbers: chosen_id is no feature, nor is rejected_idx by itself."""
    match = NUMERIC.match(name)
    if not match or NO_FEATURE.search(match[2]):
        return False
    other = "rejected" if match[1] == "chosen" else "chosen"
    return f"{other}{name[len(match[1]) :]}" in table.columns and not is_number(table.first(name))


def _options(table: Table) -> str | None:
    numbered = unnamed(table)
    if numbered is None:
        return None
    label, found = numbered
    names = " or after ".join(", ".join(options) for options in found)
    flags = ", or ".join(f"--alternatives {' '.join(options)}" for options in found)
    return (
        f": columns are called after {names}, and {label} holds {shown(table.first(label))} and the like: say which "
        f"they number, in that order, as by {flags}."
    )


def _zero(table: Table) -> str | None:
    found = counted_from_zero(table)
    return found and (
        f": column {found.label} holds numbers from 0 to {len(found.options) - 1}, and columns are numbered from 1 to "
        f"{len(found.options)}: say by --first-is 0 that 0 is option 1, or write the options' own numbers there."
    )


def _none(table: Table) -> str | None:
    found = with_none(table)
    return found and (
        f": column {found[0]} holds {shown(found[1])} in many rows, which names none of the options that columns are "
        "called after: leave those rows out if none was chosen there."
    )


def _votes(table: Table) -> str | None:
    lower = by_plain_name(table)
    models = next(((lower[a], lower[b]) for a, b in MODELS if a in lower and b in lower), None)
    if models is not None:
        return (
            f" has names of models in {models[0]} and {models[1]}, but no answers of theirs: robust-rlhf leaderboard "
            "rates models by such votes."
        )
    players, things = players_of(table), numbers_of_two_sides.things_of(table)
    if players is None and not things:
        return None
    first, second = players or things
    flags = "" if players else f" --model-a {first} --model-b {second}"
    return (
        f" says in {first} and {second} what was compared, and has no numbers or texts of these: robust-rlhf "
        f"leaderboard FILE{flags} rates them by who won."
    )


def players_of(table: Table) -> tuple[str, str] | None:
    """The columns of the two that play against each other, if they hold words that come again."""
    lower = by_plain_name(table)
    for a, b in (pair for pair in PLAYERS if {*pair} <= lower.keys()):
        cells = [str(cell) for name in (a, b) for cell in table.some(lower[name])]
        if len({*cells}) < len(cells) and not any(is_number(cell) for cell in cells):
            return lower[a], lower[b]
    return None


def _differences(table: Table) -> str | None:
    """Differences of two options, of which nobody knows the numbers."""
    names = [name for name in table.names if DIFFERENCE.search(name) and mostly_numbers(table.some(name))]
    return (
        f" has differences of two options in {', '.join(names[:3])}: write the numbers of both, such as price_1 and "
        "price_2 beside a label, or in Python give the differences to Pairs.of_differences."
        if names
        else None
    )


def _other_sides(table: Table) -> str | None:
    """Numbers of two sides beside columns that are called alike and are of more."""
    found = numbers_of_two_sides.in_the_way(table)
    if found is None:
        return None
    mine, others = (", ".join(names[:4]) + (", …" if len(names) > 4 else "") for names in found)
    return (
        f" has the numbers of two sides in {mine}, and {others} are called as if they were of more: leave those "
        "out, or rename them so that none ends in a number or a letter by itself."
    )


def _named_columns(table: Table) -> str | None:
    """Two columns of texts whose names a label holds."""
    lower, words = by_plain_name(table), {word(name): name for name in table.names}
    for label in (lower[name] for name in LABELS if name in lower):
        said = {word(cell) for cell in table.some(label) if not is_missing(cell)} - TIE
        sides = [words[each] for each in sorted(said & words.keys())]
        if len(said) == len(sides) == 2 and all(holds_texts(table.first(side)) for side in sides):
            return (
                f" has a label, {label}, that names the columns {sides[0]} and {sides[1]}: say by --chosen {sides[0]} "
                f"--rejected {sides[1]} --label {label} that these are the two sides."
            )
    return None


def _nested(table: Table) -> str | None:
    """Objects that hold what should be columns."""
    for name in table.names:
        first = next(iter(records(table.first(name))), {})
        inner = Table(table.source, {key: [cell] for key, cell in first.items()}, 1)
        if chosen_sides(inner) or open_sides(inner, ()):
            return (
                f" has the sides inside the objects of column {name} ({', '.join(inner.names[:6])}): write them as "
                "columns of their own, a pair a row."
            )
    return None


def _listed(table: Table) -> str | None:
    """Several answers in one cell."""
    answers = answers_of(with_lists(table, Columns()), fewest=2)
    if answers is None or not answers.listed:
        return None
    return (
        f" has several answers a row in column {answers.columns[0]}, and no column that is known to say which is the "
        "best: name one by --label that holds its letter, number, name or text, or write lists of scores or ranks, or "
        "a pair a row as chosen and rejected."
    )


def _scores(table: Table) -> str | None:
    """An answer a row, and no numbers that score them."""
    found = unscored(table)
    if found is None:
        return None
    prompt, answer, score = found
    lacks = "no column that is known to score them"
    if score is not None:
        lacks = f"column {score} holds {shown(table.first(score))} and the like"
    return (
        f" has several rows of {answer} to one {prompt}, and {lacks}: name by --label a column of numbers, the highest "
        "for the best answer, or write a pair a row as chosen and rejected."
    )


def _objects(table: Table) -> str | None:
    """What platforms export as it is, such as rankings of Label Studio."""
    inside = {
        name: [value for entry in records(table.first(name)) for value in entry.values()]
        for name in table.names
    }
    names = [
        name for name, values in inside.items() if any(isinstance(value, dict | list) for value in values)
    ]
    return (
        f" has objects in {' and '.join(names[:3])}, and nothing in them that is known to say who won: write the "
        "prompt, the answers and who won as columns of their own, a pair a row."
        if names
        else None
    )


def _general(table: Table) -> str:
    names = (name[:LONGEST] + "…" * (len(name) > LONGEST) if name else '""' for name in table.names[:12])
    listed = ", ".join(names) + (", …" if len(table.names) > 12 else "")
    return f" has no column chosen_<name> or rejected_<name>: {GENERAL} (it has {listed})."
