"""Who won: labels in words that name a side. Numbers whose meaning a caller gave: `label_rules.py`."""

import dataclasses
import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float

from .bad_cells import BadCell, shown

FIRST, SECOND = {"first", "left", "a", "1st", "one"}, {"second", "right", "b", "2nd", "two"}
TRUTHS = {"true", "false"}
YES = {"true", "1", "yes", "t", "y", "wahr", "ja", "vrai", "oui", "verdadero", "sí", "vero", "sì", "si"}
NO = {"false", "0", "no", "f", "n", "falsch", "nein", "faux", "non", "falso"}
# What databases and tables of floats write where a label is missing.
NULLS = {"null", "\\n", "nan", "<na>", "n/a", "#n/a", "na"}
TIE = {
    "tie", "ties", "tied", "equal", "equally good", "same", "both", "both good", "both bad", "bothbad", "bothgood",
    "neither",
    "draw", "none", "tie bothbad", "tie both bad", "tie bothgood", "tie both good", "about the same", "no preference",
    "a=b", "=", "equal quality", "similar", "indifferent", "undecided", "no difference", "neutral", "both are good",
    "both are bad", "both are equally good", "both equally good", "equally bad", "equally preferred", "about equal",
    "no clear preference", "they are about the same", "neither is better", "both are equal", "a = b", "1=2", "1 = 2",
    "both equal", "the same", "both the same", "both are the same", "they are equal", "they are the same", "no winner",
    "it's a tie", "tievote", "bothbad vote",
    "i have no preference", "neither of them", "both of them", "neither a nor b", "both a and b", "a and b",
    "neither one", "either one",
    "unentschieden", "gleich", "gleich gut", "gleichstand", "beide gleich", "égal", "égaux", "égalité",
    "egalite", "ex aequo", "empate", "iguales", "igual", "pareggio", "pari", "uguali", "parità",
    "beide gleich gut", "beide sind gleich gut", "gleichwertig", "kein unterschied", "keine präferenz", "egal",
    "pas de différence", "pas de préférence", "aucune préférence", "aucune différence", "sin preferencia",
    "sin diferencia", "ninguna preferencia", "ninguna diferencia", "uguale", "nessuna preferenza",
    "nessuna differenza", "gelijk", "gelijkspel", "geen voorkeur", "geen verschil", "引き分け", "平局", "ничья",
}  # fmt: skip
THINGS = (
    "response|responses|model|option|answer|completion|assistant|output|text|summary|candidate|reply|generation|"
    "conversation|choice|message|side|translation|version|alternative|alt|profile|product|plan|concept|item"
)
STRONG = "much|clearly|significantly|strongly|far|definitely|a lot"
WEAK = "slightly|somewhat|marginally|a bit|a little|barely|mildly"
WHO = "a|b|0|1|2|left|right|first|second|one|two|1st|2nd"
LEAD = "overall|therefore|thus|hence|in conclusion|in summary"
# "model a", "response 1 is slightly better than response 2", "a wins", "strongly prefer b", "b is worse".
SAYS_WHO = re.compile(
    rf"^(?:(?:{LEAD}),? )?(?:i )?(?:(?P<much>{STRONG}|{WEAK}) )?(?:the |my |final |overall |prefers? |"
    rf"(?:winner|verdict|preference|decision)(?: is)?:? |better (?:{THINGS}) is ){{0,4}}"
    rf"(?:(?:{THINGS}):? ?#?)?(?P<who>{WHO})"
    rf"(?: (?:one|{THINGS}))?(?: (?:is|are|was))?(?: (?P<how>{STRONG}|{WEAK}))?"
    rf"(?: (?:better|wins?|won|preferred|best|(?P<worse>worse|worst|loses|lost)))?"
    rf"(?: (?:than|beats?|defeats?|over) (?:the )?(?:(?:{THINGS}) ?)?(?P<other>{WHO}|other)(?: (?:one|{THINGS}))?)?$"
)
# What labels call sides that are left and right.
LEFT_AND_RIGHT = dict.fromkeys(
    ("l", "leftvote", "links", "gauche", "izquierda", "sinistra"), 1.0
) | dict.fromkeys(("r", "rightvote", "rechts", "droite", "derecha", "destra"), -1.0)
# The number of a step of a scale before its words: "1 - a is much better".
STEP = re.compile(
    rf"^[1-9][.:)]? (?=.*\b(?:{WHO})\b.*\b(?:better|worse|preferred)\b|.*\bprefers?\b.*\b(?:{WHO})\b)"
)
# "winner: tie", "verdict: both".
BEFORE_TIES = re.compile(rf"^(?:(?:{LEAD}),? )?(?:the |my |final )*(?:winner|verdict)(?: is)?: ")
# The same of a tie: "4 - about the same".
STEP_OF_TIE = re.compile(r"^[1-9][.:)]? (?=\D)")
# "a>b", "b >> a", "response a > response b".
ORDER = re.compile(
    rf"^(?:(?:{THINGS}) )?(?P<a>a|b|0|1|2) ?(?P<how>>{{1,3}}|<{{1,3}}|≻) ?(?:(?:{THINGS}) )?(?P<b>a|b|0|1|2)$"
)
# The verdict of a judge, among what it says of it.
VERDICT = re.compile(r"\[\[[^\[\]]{1,20}\]\]")
SENTENCES = re.compile(r"\s*\n\s*|(?<=[^\W\d][.!?])\s+|(?<=[.!?*])\s+(?=\S+:)")
# Letters before a verdict at least: what is shorter is a list of sides, or their numbers.
SHORTEST = 20
# Between a sign and its number.
SIGN = re.compile(r"^([-+])\s+")
BOLD = re.compile(r"\*\*([^*]+)\*\*")
SUFFIX = re.compile(
    r"(?:^|[\W_]|(?<=[a-z]))(a|b|0|1|2|left|right|first|second|one|two|A|B|gauche|droite|links|rechts|izquierda|derecha|"
    r"sinistra|destra|top|bottom)$"
)


@dataclasses.dataclass(frozen=True)
class Rule:
    """How a label is read: `value(cell)` is above 0 for the first side, 0 for a tie, None if unknown; `says`: in
    words."""

    says: str
    value: Callable[[object], float | None]


def read_labels(cells: list, column: str, rule: Rule) -> tuple[Float[np.ndarray, " N"], list[BadCell]]:
    """How much the first side is preferred, one number a row: above 0 the first, 0 a tie, below 0 the second."""
    values, bad = np.zeros(len(cells)), []
    known: dict = {}
    for row, cell in enumerate(cells):
        key = (type(cell), cell) if isinstance(cell, str | int | float | bool) else None
        if key is None or key not in known:
            value = None if is_missing(cell) else rule.value(cell)
            if key is not None:
                known[key] = value
        else:
            value = known[key]
        if value is None:
            reason = f"holds the unknown label {shown(cell)} (--tie-is, if a tie)"
            if is_missing(cell) or word(cell) in NULLS:
                reason = "is missing" + ("" if is_missing(cell) else f" ({shown(cell)})")
            bad.append(BadCell(row, column, reason))
        else:
            values[row] = value
    return values, bad


def word_rule(sides: tuple[str, str], tie_is: str | None = None, apart: bool = True) -> Rule:
    """Words that name a side (`SAYS_WHO`), or a tie; the column's name, or what sets it `apart` from the other's."""
    names = dict(zip(map(word, sides), (1.0, -1.0), strict=True))
    names = dict(zip(_apart(sides), (1.0, -1.0), strict=True)) | names if apart else names
    named, tie = suffixes(sides), None if tie_is is None else word(tie_is)
    names = LEFT_AND_RIGHT | names if ("left", "right") in (named, _apart(sides)) else names
    ties = TIE if tie is None else {*TIE, tie}

    # A column repeats few words over many rows.
    @functools.lru_cache(1024)
    def meaning(said: str) -> float | None:
        if said in names and said != tie:
            return names[said]
        if said in ties or {BEFORE_TIES.sub("", said), STEP_OF_TIE.sub("", said)} & ties:
            return 0.0
        if number_in(said) is not None and said not in named:
            return None
        if said == "chosen":
            return 1.0 if sides[0].endswith("chosen") or "chosen" in sides[0] else None
        if said == "rejected":
            return -1.0 if "rejected" in sides[1] else None
        order = ORDER.match(said)
        if order:
            way = _who(order["b"] if "<" in order["how"] else order["a"], named)
            return None if way is None or order["a"] == order["b"] else way * len(order["how"])
        match = SAYS_WHO.match(STEP.sub("", said))
        if not match or match["who"] == match["other"]:
            return None
        way, how = _who(match["who"], named), match["how"] or match["much"]
        strength = 2.0 if how and re.fullmatch(STRONG, how) else 1.0
        return None if way is None else way * (-strength if match["worse"] else strength)

    return Rule(f"words that name {sides[0]} or {sides[1]}", lambda cell: meaning(word(cell)))


def _apart(sides: tuple[str, str]) -> tuple[str, str]:
    """The words of two names that are not the same at both ends: ("human", "ai") of human_response and ai_response; the
    names themselves where nothing is left of one, or a number."""
    first, second = (word(name).split() for name in sides)
    for end in (0, -1):
        while first and second and first[end] == second[end]:
            del first[end], second[end]
    parts = " ".join(first), " ".join(second)
    return parts if all(part and number_in(part) is None and part not in TIE for part in parts) else sides


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


def yes_or_no(cell: object) -> bool | None:
    """True of 1, true or yes; False of 0, false or no; None of anything else."""
    said = word(cell)
    return True if said in YES else False if said in NO else None


def suffixes(sides: tuple[str, str]) -> tuple[str, str]:
    """What the names of two sides end in: ("a", "b"), ("0", "1"), …; ("", "") if nothing that can be told."""
    found = [match[1].casefold() if (match := SUFFIX.search(name.strip())) else "" for name in sides]
    return (found[0], found[1]) if found[0] and found[1] and found[0] != found[1] else ("", "")


def word(cell: object) -> str:
    """A cell for comparison: small letters, single spaces, no brackets; 1.0 in a table of floats is the 1 of the
    file."""
    return _word(str(cell))


@functools.lru_cache(1024)
def _word(cell: str) -> str:
    said = cell.strip().casefold()
    if said.endswith("%") and number_in(said[:-1]) is not None:
        said = said[:-1]
    number = SIGN.sub(r"\1", said.strip("[]() "))  # its sign is no dash
    if number_in(number) is not None:
        return number.removeprefix("+").removesuffix(".0")
    if said.startswith("[[c"):  # a judge's third verdict
        return "tie"
    said = BOLD.sub(r"\1", said)
    # A mark before a word may say not.
    bare = re.sub(r"[\s_\-()\[\]@]+", " ", said).lstrip(" .").rstrip(" .!")
    return bare.lstrip(" .*\"'").rstrip(" .!*\"'") or bare  # stars alone are a rating


def verdict_in(cell: object, rule: Rule, sentences: bool = True) -> object:
    """The only verdict in brackets of a text such as "I prefer the first. [[A]]", or its last sentence if that names a
    side by `rule`, or says that the verdict is a tie, and no other one says another; of anything else the cell."""
    if not isinstance(cell, str):
        return cell
    found = {*VERDICT.findall(cell)}
    if found or not sentences:
        return found.pop() if len(found) == 1 else cell
    *before, last = SENTENCES.split(cell.strip())
    way = rule.value(last)
    if way is None or sum(map(len, before)) < SHORTEST or (way == 0 and not BEFORE_TIES.match(word(last))):
        return cell
    others = {np.sign(other) for said in before if (other := rule.value(said))}
    return last if others <= {np.sign(way)} else cell


def _who(token: str, named: tuple[str, str]) -> float | None:
    if token in named:
        return 1.0 if token == named[0] else -1.0
    if token.isdigit() and (named[0].isdigit() or token == "0"):
        return None
    return 1.0 if token in FIRST | {"1"} else -1.0 if token in SECOND | {"2"} else None


def number_in(said: Any) -> float | None:
    """The finite number that a word or another cell is; None for booleans."""
    if isinstance(said, bool):
        return None
    try:
        value = float(said)
    except (TypeError, ValueError, OverflowError):
        return None
    return value if np.isfinite(value) else None


def is_missing(cell: Any) -> bool:
    return (
        cell is None
        or (isinstance(cell, str) and not cell.strip())
        or (isinstance(cell, float) and np.isnan(cell))
    )
