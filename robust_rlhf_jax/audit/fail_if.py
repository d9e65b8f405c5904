"""`--fail-if corrupt>0.05`: shares that a pipeline does not accept. `cli.py` gives the status."""

import operator
import re
from collections.abc import Iterable

_FORM = re.compile(r"^\s*([a-z_]+)\s*(>=|<=|>|<)\s*([0-9.eE+-]+%?)\s*$")
# Shares that every audit has, beside those of its issues.
SHARES = ("corrupt", "corrupt_lower", "corrupt_upper", "dropped")
_TESTS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}


class ThresholdCrossed(Exception):
    """A file is not as `--fail-if` wants it; the command ends with status 3."""


def check_thresholds(conditions: Iterable[str], shares: dict[str, float]) -> list[str]:
    """One sentence for each condition, such as "corrupt>0.05" or "identical>1%", that holds.

    **Raises:** ValueError for a condition that cannot be parsed, or a share that the audit does not have.
    """
    crossed = []
    for condition in conditions:
        name, test, limit = check_name(condition, shares)
        if _TESTS[test](shares[name], limit):
            crossed.append(f"{name} is {shares[name]:.4f}, and --fail-if says {condition}")
    return crossed


def check_name(condition: str, names: Iterable[str]) -> tuple[str, str, float]:
    """What `parse_threshold` finds.

    **Raises:** ValueError for a condition that cannot be parsed, or that is on anything but these `names`.
    """
    name, test, limit = parse_threshold(condition)
    there = sorted(names)
    if name not in there:
        raise ValueError(f"--fail-if {condition}: there is no {name}; there are {', '.join(there)}.")
    return name, test, limit


def parse_threshold(condition: str) -> tuple[str, str, float]:
    """(name, comparison, number).

    **Raises:** ValueError for what is not NAME>NUMBER.
    """
    match = _FORM.match(condition)
    try:
        name, test, number = match.groups()  # pyright: ignore[reportOptionalMemberAccess]
        limit = float(number.removesuffix("%")) / (100 if number.endswith("%") else 1)
    except (AttributeError, ValueError):
        raise ValueError(
            f"--fail-if {condition}: write a name, > or <, and a share, such as corrupt>0.05."
        ) from None
    return name, test, limit
