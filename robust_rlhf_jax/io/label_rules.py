"""What a column of labels means: as a caller says, or as its words say; numbers are never guessed."""

import re

import numpy as np

from .bad_cells import shown
from .columns import Columns
from .labels import SAYS_WHO, TIE, TRUTHS, Rule, is_missing, number_in, suffixes, word, word_rule

ASKING = "--scale FIRST SECOND (the numbers at which each side is surest; between them is a tie)"
# What surveys write where a question was not answered.
OF_NO_ANSWER = {"-1", "-8", "-9", "8", "9", "77", "88", "97", "98", "99", "-77", "-88", "-99", "999", "-999"}
# Columns of a strength: that its numbers are those of the sides' names is then a coincidence.
GRADED = re.compile("strength|degree|score|rating|margin|overall", re.I)
# Columns that say which side lost.
OF_LOSERS = re.compile(
    r"(?:^|[\W_])(?:losers?|losing|lost|worse|worst|rejected|dispreferred|(?:non|un|not)_?(?:preferred|chosen|selected)|"
    r"weaker|poorer|inferior|bad|disliked|discarded|eliminated|removed|deleted|dismissed|"
    r"schlechter\w*|verlierer\w*|unterlegen\w*|perdant\w*|pire|moins_bonne|perdedor\w*|peor|perdente|peggiore|"
    r"more[\W_](?:harmful|toxic|offensive|biased|dangerous|risky)|(?:less|least)[\W_](?:preferred|helpful|good|liked))"
    r"(?:$|[\W_])",
    re.I,
)


def rule_for(cells: list, column: str, sides: tuple[str, str], asked: Columns) -> Rule:
    """How to read a column: as asked, else as its words say.

    **Raises:** ValueError, with the flag that helps, for numbers that could mean anything, and for words that name no
    side; for two flags that both say what labels mean.
    """
    if asked.scale is not None and asked.first_is is not None:
        raise ValueError("--scale and --first-is both say what labels mean: give one of them")
    words = {word(cell) for cell in cells if not is_missing(cell)}
    if asked.first_is is None:
        _check_commas(column, words - {word(asked.tie_is)})
    if asked.scale is not None:
        return scale_rule(column, words, asked)
    if asked.first_is is not None:
        return _told_rule(column, words, asked)
    if OF_LOSERS.search(column):
        raise ValueError(
            f"column {column} says by its name which side lost: say which value means that the first side won, by "
            "--first-is, or name the column of the winner by --label"
        )
    numbers = {w for w in words if number_in(w) is not None or w in TRUTHS}
    if numbers and numbers == words - TIE - {asked.tie_is and word(asked.tie_is)}:
        return _rule_of_numbers(column, words, numbers, sides, asked)
    return _rule_of_words(column, words, sides, asked)


def _rule_of_numbers(
    column: str, words: set[str], numbers: set[str], sides: tuple[str, str], asked: Columns
) -> Rule:
    """**Raises:** ValueError for numbers that are not those of the sides' names."""
    named = suffixes(sides)
    if numbers <= set(named) and len(numbers) > 1 and not GRADED.search(column):
        return Rule(
            f"{named[0]} is {sides[0]}, {named[1]} is {sides[1]}", word_rule(sides, asked.tie_is).value
        )
    raise ValueError(_what_numbers(column, numbers, named, ties=numbers != words))


def _rule_of_words(column: str, words: set[str], sides: tuple[str, str], asked: Columns) -> Rule:
    """**Raises:** ValueError for words of which none names a side, and for those that count the sides otherwise."""
    rule = word_rule(sides, asked.tie_is)
    unknown = [w for w in words if rule.value(w) is None]
    _check_count(column, words, suffixes(sides))
    if unknown and not any(rule.value(w) for w in words):
        some = ", ".join(sorted(map(shown, unknown))[:3])
        raise ValueError(
            f"column {column} holds {some}, which name no side: say which value means the first side, by --first-is"
        )
    return rule


def _check_commas(column: str, words: set[str]) -> None:
    """**Raises:** ValueError for numbers with a decimal comma."""
    commas = sorted(w for w in words if number_in(w) is None and number_in(w.replace(",", ".")) is not None)
    if commas and all(number_in(w.replace(",", ".")) is not None for w in words - TIE):
        raise ValueError(
            f"column {column} holds {shown(commas[0])} and the like: write numbers with a decimal point, or say by "
            "--tie-is if it is a tie"
        )


def _check_count(column: str, words: set[str], named: tuple[str, str]) -> None:
    """**Raises:** ValueError for "response 1" and "response 2" of sides that are numbered 0 and 1."""
    said = {match["who"] for w in words if (match := SAYS_WHO.match(w)) and match["who"].isdigit()}
    if named == ("0", "1") and said == {"1", "2"}:
        one = min(w for w in words if (match := SAYS_WHO.match(w)) and match["who"] == "1")
        raise ValueError(
            f"column {column} counts the sides from 1, and their columns count from 0: say by --first-is {one!r} that "
            "this means the first side"
        )


def scale_rule(column: str, words: set[str], asked: Columns) -> Rule:
    """Numbers between the two of `--scale`; the middle is a tie, and so is what `--tie-is` names.

    **Raises:** ValueError for equal ends, and for a column with other numbers or with words.
    """
    assert asked.scale is not None
    first, second = asked.scale
    middle, half = (first + second) / 2, abs(second - first) / 2
    if not 0 < half < np.inf:
        raise ValueError(
            f"--scale {first:g} {second:g} has no two ends: give the numbers for the first and the second side"
        )
    ties = TIE if asked.tie_is is None else TIE | {word(asked.tie_is)}
    outside = [w for w in words if w not in ties and not _within(number_in(w), middle, half)]
    if words and len(outside) == len(words):
        raise ValueError(
            f"column {column} holds {shown(sorted(outside)[0])}, not between {first:g} and {second:g} (--scale)"
        )
    unit = 1.0 if half >= 1 else half

    def value(cell) -> float | None:
        if word(cell) in ties:
            return 0.0
        number = number_in(word(cell))
        if number is None or not _within(number, middle, half):
            return None
        return (middle - number) * np.sign(second - first) / unit

    return Rule(f"{first:g} is the first side, {second:g} the second", value)


def _told_rule(column: str, words: set[str], asked: Columns) -> Rule:
    told, tie = word(asked.first_is), None if asked.tie_is is None else word(asked.tie_is)
    if told not in words and words:
        some = ", ".join(sorted(map(shown, words))[:4])
        raise ValueError(f"column {column} never holds --first-is {asked.first_is}: it holds {some}")
    others = words - TIE - {told, tie}
    if len(others) > 1:
        some = " and ".join(sorted(map(shown, others))[:3])
        raise ValueError(
            f"column {column} holds {some} beside --first-is {asked.first_is}: say which of them is a tie, by "
            f"--tie-is, or give {ASKING}"
        )

    def value(cell) -> float:
        said = word(cell)
        return 0.0 if said == tie or (said in TIE and said != told) else 1.0 if said == told else -1.0

    return Rule(f"{asked.first_is} is the first side", value)


def _what_numbers(column: str, words: set[str], named: tuple[str, str], ties: bool) -> str:
    """The sentence about numbers that nobody explained; sides may be `named` by two, and `ties` said in words."""
    alone = "beside ties" if ties else "alone"
    values = sorted(words, key=lambda w: (number_in(w) or 0.0, w))
    few = (
        " and ".join((", ".join(values[:-1]), values[-1]))
        if 1 < len(values) <= 4
        else f"numbers such as {values[0]}"
    )
    others = [v for v in values if v not in named]
    if len(others) == 1 and {*named} < words and others[0] in OF_NO_ANSWER:
        return (
            f"column {column} holds {few}: leave the rows of {others[0]} out if it means that nothing was said, or say "
            f"by --tie-is {others[0]} that it is a tie where {named[0]} and {named[1]} name the sides"
        )
    if len(others) == 1 and {*named} < words:
        return (
            f"column {column} holds {few}: say by --tie-is {others[0]} that {others[0]} is a tie where {named[0]} and "
            f"{named[1]} name the sides, or give {ASKING}"
        )
    if len(values) == 2 and all("." not in v for v in values):
        return (
            f"column {column} holds {few} {alone}: say which one means the first side, by --first-is {values[0]} or "
            f"--first-is {values[1]}"
        )
    low, high = values[0], values[-1]
    if len(values) == 1:
        return f"column {column} holds {low} {alone}: give --first-is {low} if it means the first side, else {ASKING}"
    if all(0 <= (number_in(v) or 0.0) <= 1 for v in values):  # probabilities
        low, high = "0", "1"
    most = max(abs(number_in(v) or 0.0) for v in values)
    if any((number_in(v) or 0.0) < 0 for v in values):  # strengths on both sides of a tie
        low, high = f"{-most:g}", f"{most:g}"
    return (
        f"column {column} holds {few}, and nothing says what they mean: give {ASKING}, such as --scale {low} "
        f"{high}, if {low} is for the first side, or --first-is with --tie-is"
    )


def _within(number: float | None, middle: float, half: float) -> bool:
    return number is not None and abs(number - middle) <= half * (1 + 1e-9)
