"""Who won: labels in words that name a side, or in numbers of which somebody said what they mean."""

import dataclasses
import re
from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from .bad_cells import BadCell, shown
from .columns import Columns

FIRST, SECOND = {"first", "left", "a", "1st", "one"}, {"second", "right", "b", "2nd", "two"}
TIE = {
    "tie", "ties", "tied", "equal", "equally good", "same", "both", "both good", "both bad", "bothbad", "bothgood", "neither",
    "draw", "none", "tie bothbad", "tie both bad", "tie bothgood", "tie both good", "about the same", "no preference",
    "a=b", "equal quality", "similar", "indifferent", "undecided", "no difference",
}  # fmt: skip
THINGS = (
    "response|responses|model|option|answer|completion|assistant|output|text|summary|candidate|reply|generation|"
    "conversation|choice|message|side|translation|version"
)
STRONG = "much|clearly|significantly|strongly|far|definitely|a lot"
WEAK = "slightly|somewhat|marginally|a bit|a little|barely|mildly"
# "model a", "response 1 is slightly better", "a wins", "prefer b".
SAYS_WHO = re.compile(
    rf"^(?:the |prefers? |winner )?(?:(?:{THINGS}) ?)?(?P<who>a|b|0|1|2|left|right|first|second|one|two|1st|2nd)"
    rf"(?: (?:one|{THINGS}))?(?: (?:is|are|was))?(?: (?P<how>{STRONG}|{WEAK}))?(?: (?:better|wins?|won|preferred|best))?$"
)
# "a>b", "b >> a".
ORDER = re.compile(r"^(?P<a>a|b|0|1|2) ?(?P<how>>{1,3}|<{1,3}) ?(?P<b>a|b|0|1|2)$")
SUFFIX = re.compile(r"(?:^|[\W_]|(?<=[a-z]))(a|b|0|1|2|left|right|first|second|one|two|A|B)$")
ASKING = "--scale FIRST SECOND (the numbers at which each side is surest; between them is a tie)"
# Columns of a strength: that its numbers are those of the sides' names is then a coincidence.
GRADED = re.compile("strength|degree|score|rating|margin|overall", re.I)


@dataclasses.dataclass(frozen=True)
class Rule:
    """How a label is read: `value(cell)` is above 0 for the first side, 0 for a tie, None if unknown; `says`: in words."""

    says: str
    value: Callable[[object], float | None]


def read_labels(cells: list, column: str, rule: Rule) -> tuple[Float[np.ndarray, " N"], list[BadCell]]:
    """How much the first side is preferred, one number a row: above 0 the first, 0 a tie, below 0 the second."""
    values, bad = np.zeros(len(cells)), []
    known: dict = {}
    for row, cell in enumerate(cells):
        key = (type(cell), cell) if isinstance(cell, str | int | float | bool) else None
        if key is None or key not in known:
            value = None if _missing(cell) else rule.value(cell)
            if key is not None:
                known[key] = value
        else:
            value = known[key]
        if value is None:
            reason = "is missing" if _missing(cell) else f"holds the unknown label {shown(cell)}"
            bad.append(BadCell(row, column, reason))
        else:
            values[row] = value
    return values, bad


def rule_for(cells: list, column: str, sides: tuple[str, str], asked: Columns) -> Rule:
    """How to read a column: as asked, else as its words say.

    **Raises:** ValueError, with the flag that helps, for numbers that could mean anything, and for words that name no
    side.
    """
    words = {word(cell) for cell in cells if not _missing(cell)}
    if asked.scale is not None:
        return scale_rule(column, words, asked)
    if asked.first_is is not None:
        return _told_rule(column, words, asked)
    numbers = {w for w in words if _number(w) is not None or w in ("true", "false")}
    named = suffixes(sides)
    if numbers and numbers == words - TIE - {asked.tie_is and word(asked.tie_is)}:
        if numbers <= set(named) and len(numbers) > 1 and not GRADED.search(column):
            return Rule(f"{named[0]} is {sides[0]}, {named[1]} is {sides[1]}", word_rule(sides, asked.tie_is).value)
        raise ValueError(_what_numbers(column, words))
    rule = word_rule(sides, asked.tie_is)
    known = [w for w in words if rule.value(w) is not None]
    if not known and words:
        some = ", ".join(sorted(map(shown, words))[:3])
        raise ValueError(
            f"column {column} holds {some}, which name no side: say which value means the first side, by --first-is"
        )
    return rule


def word_rule(sides: tuple[str, str], tie_is: str | None = None) -> Rule:
    """Words that name a side (`SAYS_WHO`), or the column's own name, or a tie."""
    names = {word(sides[0]): 1.0, word(sides[1]): -1.0}
    named, ties = suffixes(sides), TIE | ({word(tie_is)} if tie_is is not None else set())

    def value(cell) -> float | None:
        said = word(cell)
        if said in names:
            return names[said]
        if said in ties:
            return 0.0
        if _number(said) is not None and said not in named:
            return None
        if said == "chosen":
            return 1.0 if sides[0].endswith("chosen") or "chosen" in sides[0] else None
        if said == "rejected":
            return -1.0 if "rejected" in sides[1] else None
        order = ORDER.match(said)
        if order:
            way = _who(order["a"], named) if ">" in order["how"] else _who(order["b"], named)
            return None if way is None or order["a"] == order["b"] else way * len(order["how"])
        match = SAYS_WHO.match(said)
        if not match:
            return None
        way = _who(match["who"], named)
        strength = 2.0 if match["how"] and re.fullmatch(STRONG, match["how"]) else 1.0
        return None if way is None else way * strength

    return Rule(f"words that name {sides[0]} or {sides[1]}", value)


def scale_rule(column: str, words: set[str], asked: Columns) -> Rule:
    """Numbers between the two of `--scale`; the middle is a tie.

    **Raises:** ValueError for equal ends, and for a column with other numbers or with words.
    """
    assert asked.scale is not None
    first, second = asked.scale
    middle, half = (first + second) / 2, abs(second - first) / 2
    if not 0 < half < np.inf:
        raise ValueError(f"--scale {first:g} {second:g} has no two ends: give the numbers for the first and the second side")
    outside = [w for w in words if w not in TIE and not _within(_number(w), middle, half)]
    if words and len(outside) == len(words):
        raise ValueError(f"column {column} holds {shown(sorted(outside)[0])}, not between {first:g} and {second:g} (--scale)")
    unit = 1.0 if half >= 1 else half

    def value(cell) -> float | None:
        if word(cell) in TIE:
            return 0.0
        number = _number(word(cell))
        if number is None or not _within(number, middle, half):
            return None
        return (middle - number) * np.sign(second - first) / unit

    return Rule(f"{first:g} is the first side, {second:g} the second", value)


def _told_rule(column: str, words: set[str], asked: Columns) -> Rule:
    told, tie = word(asked.first_is), None if asked.tie_is is None else word(asked.tie_is)
    others = words - TIE - {told, tie}
    if len(others) > 1:
        some = " and ".join(sorted(map(shown, others))[:3])
        raise ValueError(
            f"column {column} holds {some} beside --first-is {asked.first_is}: say which of them is a tie, by --tie-is, or "
            f"give {ASKING}"
        )
    if told not in words and words:
        raise ValueError(
            f"column {column} never holds --first-is {asked.first_is}: it holds {', '.join(sorted(map(shown, words))[:4])}"
        )

    def value(cell) -> float:
        said = word(cell)
        return 0.0 if said == tie or (said in TIE and said != told) else 1.0 if said == told else -1.0

    return Rule(f"{asked.first_is} is the first side", value)


def read_ties(cells: list, column: str) -> tuple[np.ndarray, list[BadCell]]:
    """Whether each row is a tie: true, 1, yes or a word for a tie; false, 0, no or nothing."""
    yes, no = {"true", "1", "yes", *TIE}, {"false", "0", "no", "", "none", *FIRST, *SECOND}
    words = ["" if cell is None else word(cell) for cell in cells]
    bad = [
        BadCell(row, column, f"holds {shown(cells[row])}, neither yes nor no")
        for row, w in enumerate(words)
        if w not in yes | no and SAYS_WHO.match(w) is None
    ]
    return np.array([w in yes and w != "none" for w in words]), bad


def suffixes(sides: tuple[str, str]) -> tuple[str, str]:
    """What the names of two sides end in: ("a", "b"), ("0", "1"), …; ("", "") if nothing that can be told."""
    found = [match[1].casefold() if (match := SUFFIX.search(name)) else "" for name in sides]
    return (found[0], found[1]) if found[0] and found[1] and found[0] != found[1] else ("", "")


def word(cell: object) -> str:
    """A cell for comparison: small letters, single spaces, no brackets; 1.0 in a table of floats is the 1 of the file."""
    said = str(cell).strip().casefold()
    if _number(said) is not None:
        return said.removeprefix("+").removesuffix(".0")
    if said.startswith("[[c"):  # a judge's third verdict
        return "tie"
    return re.sub(r"[\s_\-()\[\]]+", " ", said).strip(" .!")


def _who(token: str, named: tuple[str, str]) -> float | None:
    if token in named:
        return 1.0 if token == named[0] else -1.0
    if token.isdigit() and (named[0].isdigit() or token == "0"):
        return None
    return 1.0 if token in FIRST | {"1"} else -1.0 if token in SECOND | {"2"} else None


def _what_numbers(column: str, words: set[str]) -> str:
    """The sentence about numbers that nobody explained."""
    values = sorted(words, key=lambda w: _number(w) or 0.0)
    few = " and ".join((", ".join(values[:-1]), values[-1])) if 1 < len(values) <= 4 else f"numbers such as {values[0]}"
    if len(values) == 2:
        return (
            f"column {column} holds {few} alone: say which one means the first side, by --first-is {values[0]} or "
            f"--first-is {values[1]}"
        )
    low, high = values[0], values[-1]
    return (
        f"column {column} holds {few}, and nothing says what they mean: give {ASKING}, such as --scale {low} {high}, or "
        "--first-is with --tie-is"
    )


def _number(said: str) -> float | None:
    try:
        value = float(said)
    except (ValueError, OverflowError):
        return None
    return value if np.isfinite(value) else None


def _within(number: float | None, middle: float, half: float) -> bool:
    return number is not None and abs(number - middle) <= half * (1 + 1e-9)


def _missing(cell) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip()) or (isinstance(cell, float) and np.isnan(cell))
