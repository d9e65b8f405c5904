"""Columns of several raters, one each: who said which side is better, in words or in numbers that a caller explains."""

import re

from ..columns import Columns
from ..labels import TIE, TRUTHS, is_missing, number_in, suffixes, word, word_rule
from ..table import Table
from .deciding import called_as_labels
from .sides import CRITERIA, RATERS, plain_name

# One column a rater: label_ann, annotator_1, vote 3.
RATERS_OWN = re.compile(
    r"^(?:annotator|rater|labell?er|worker|judge|reviewer|annotation|vote|label|preference|choice|winner|evaluator|expert|"
    r"person|coder|pref)(?:[\s_.\-](?P<who>\w+)|(?P<number>\d+))$|^(?P<who2>\w+?)[\s_.\-](?:label|vote|preference|choice|pref|annotation)$",
    re.I,
)
# Those of people, whoever they agree with.
PERSON = re.compile(
    r"^(?:annotator|rater|labell?er|worker|judge|reviewer|evaluator|expert|person|coder)", re.I
)
# Numbers that may be what raters say, and how many different ones: of a side each, and of ties.
FEW_NUMBERS, MOST_NUMBERS = {"-1", "0", "1", "2", "3", *TRUTHS}, 3
# Rows from which on two raters say the same of a side at least once.
FEWEST_OF_FLAGS = 10
# What was asked, when, how often and in which language: of several such columns none is a rater.
OCCASION = re.compile(
    r"^(?:(?:q|question|turn|seed|run|sample|trial|task|prompt|item|session|wave|phase|day|week|page|part|step|temp\w*|"
    r"t|version|v)_?\d+|en|de|fr|es|pt|nl|zh|ja|ko|ru|ar|hi)$",
    re.I,
)

# What is no rater beside others: what was made of several judgements, times, and what a person and a machine each said.
NO_RATER = re.compile(
    r"^(?:(?P<of_several>majority|consensus|aggregated?|adjudicated)|pred(?:icted|ictions?)?|true|truth|gold(?:en)?|before|"
    r"after|pre|post|initial|final|original|corrected|old|new|round_?\d*|human|ai|model|machine|auto(?:matic|mated)?|rm|"
    r"reward_model)$",
    re.I,
)
# Machines: raters in a panel of them, but not beside people. Claude is a person's name, too.
MACHINE = re.compile(r"^(?:llm\w*|gpt\w*|claude[\d_]\w*|gemini\w*)$", re.I)
# How a judgement was made, or when: of "before_discussion" and "after_discussion" neither is a rater.
TREATMENT = re.compile(
    r"^(?:before|after|pre|post|short|long|term|strict|loose|lenient|weighted|unweighted|clean(?:ed)?|noisy|raw|filtered|"
    r"cot|direct|zero|few|shot|prompted|swapped|reversed|train|test|val|dev|smoothed|calibrated)$",
    re.I,
)
PARTS_OF_NAMES = re.compile(r"[\s_.\-]+")


def rater_columns(table: Table, sides: tuple[str, str]) -> dict[str, str]:
    """{rater: column} where each of two or more raters has a column of words that name sides."""
    rule = word_rule(sides)
    found, other = {}, False
    for name in table.names:
        match = RATERS_OWN.match(name)
        if not match or name in sides:
            continue
        words = {word(cell) for cell in table.some(name) if cell is not None and cell != ""}
        if words and all(rule.value(w) is not None for w in words):
            who = match["who"] or match["number"] or match["who2"]
            none = NO_RATER.search(who)
            other |= none is not None and not none["of_several"]
            parts = () if PERSON.match(name) else PARTS_OF_NAMES.split(who)
            if not none and not any(map(_is_no_person, (who, *parts))):
                found[who] = name
    people = {who: name for who, name in found.items() if not MACHINE.search(who)}
    # Machines beside what "human", "gold" or the like said are measured by it, and no panel.
    if len(people) > 1 or (other and len(people) < len(found)):
        found = people
    return found if len(found) > 1 and not _are_flags(table, found, sides) else {}


def told_raters(
    table: Table, sides: tuple[str, str], asked: Columns, named_by: tuple[str, ...]
) -> dict[str, str]:
    """{rater: column} of numbers of two or more raters, where no other column may be the label and the caller says
    what those mean.

    **Raises:** ValueError where the caller does not.
    """
    raters = _numbers_of_raters(table, sides)
    if not raters or called_as_labels(table, sides, named_by):
        return {}
    if asked.first_is is not None or asked.scale is not None:
        return raters if len(raters) > 1 else {}
    columns = [*raters.values()]
    cells = {word(cell) for name in columns for cell in table.some(name) if not is_missing(cell)}
    numbers = sorted(said for said in cells if number_in(said) is not None or said in TRUTHS)
    listed = ", ".join(columns[:3]) + (", …" if len(columns) > 3 else "")
    values = f"{', '.join(numbers[:-1])} and {numbers[-1]}"
    hold, one = ("holds", f"give --label {columns[0]} and say") if len(columns) == 1 else ("hold", "say")
    raise ValueError(
        f"{table.path} has {sides[0]} and {sides[1]}, and {listed} {hold} {values}: if "
        f"that is who won, {one} by --first-is which one means {sides[0]}, such as --first-is {numbers[0]}; else name "
        "the column of the label by --label"
    )


def _numbers_of_raters(table: Table, sides: tuple[str, str]) -> dict[str, str]:
    """{rater: column} of columns called after people, such as `rater_1`, that hold two or three small numbers, or true
    and false, which name no side: a caller has to say which one means the first."""
    value, found, said = word_rule(sides).value, {}, set()
    for name in (name for name in table.names if name not in sides):
        match = RATERS_OWN.match(name)
        words = {word(cell) for cell in table.some(name) if not is_missing(cell)} - TIE
        who = match and (match["who"] or match["number"] or match["who2"])
        people = PERSON.match(name) is not None and plain_name(name) not in RATERS
        if who and people and words <= FEW_NUMBERS and not any(map(value, words)):
            parts = PARTS_OF_NAMES.split(who)
            if words and not NO_RATER.search(who) and not any(map(_is_no_person, (who, *parts))):
                found[who] = name
                said |= words
    return found if 1 < len(said) <= MOST_NUMBERS else {}


def _is_no_person(who: str) -> bool:
    return any(pattern.search(who) for pattern in (CRITERIA, OCCASION, TREATMENT))


def _are_flags(table: Table, raters: dict[str, str], sides: tuple[str, str]) -> bool:
    """Whether two columns called after the sides, such as winner_0 and winner_1, differ in nearly all rows, or are
    never both 1 in many, and not called after people: they say which side won, not who said so."""
    if {*raters} != {*suffixes(sides)}:
        return False
    both = [[word(cell) for cell in cells] for cells in zip(*map(table.some, raters.values()), strict=False)]
    if sum(a != b for a, b in both) > 0.9 * len(both):
        return True
    people = any(PERSON.match(name) for name in raters.values())
    never = ["1", "1"] not in both and {said for row in both for said in row} <= {"0", "1", ""}
    return never and not people and len(both) >= FEWEST_OF_FLAGS
