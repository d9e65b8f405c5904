"""Names of what raters are asked, such as `helpfulness` or `overall_preference`: no names of raters."""

import re

from .sides import CRITERIA, LABELS, plain_name

NUMBERED = re.compile(r"q(?:uestion)?_?\d+")
# What stands beside a criterion: `preference_safety`, `more_helpful`, `helpfulness_of_answers`.
BESIDE = {
    "preference", "pref", "label", "choice", "vote", "winner", "comparison", "verdict", "judgment", "judgement",
    "better", "best", "preferred", "more", "most", "less", "question", "of", "and", "the", "which", "is", "response",
    "answer",
}  # fmt: skip


def is_question(name: str) -> bool:
    """Whether a name is that of a label, of a criterion, or the number of a question.

    **Example:**

    >>> from robust_rlhf_jax.io.schemas.questions import is_question
    >>> is_question("overall_preference"), is_question("more_helpful"), is_question("ann")
    (True, True, False)
    """
    plain = plain_name(name)
    if plain in LABELS or NUMBERED.fullmatch(plain):
        return True
    parts = [part for part in plain.split("_") if part]
    about = [part for part in parts if CRITERIA.match(part)]
    return bool(about) and {*parts} <= {*about, *BESIDE}
