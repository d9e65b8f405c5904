"""What other readers of Markdown understand and Python-Markdown does not: lists, doctests, formulas."""

import re

PROMPTS = re.compile(r"(?:^>>> .*\n?(?:^[^\n]+\n?)*)+", re.MULTILINE)
# Enough for the notebooks' formulas, so that the site needs no script for mathematics.
LATEX = (
    (r"\\frac\{([^{}]*)\}\{([^{}]*)\}", r"(\1)/\2 "),
    (r"\\frac(\w)(\w)", r"1/\2 "),
    (r"\^\\star", "★"),
    (r"\^\\top", "ᵀ"),
    (r"_\{\\min\}", "_min"),
    (r"\\,", " "),
    (r"\\sum", "Σ"),
    (r"\\(?:var)?epsilon *", "ε"),
    (r"\\theta", "θ"),
    (r"\\beta", "β"),
    (r"\\mu", "μ"),
    (r"\\pi", "π"),
)
ITEM = re.compile(r"(?:[-*]|\d+\.) ")


def fenced(text: str) -> str:
    """Each doctest in a fence: Markdown takes `>>>` for quotations."""
    return PROMPTS.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text)


def spaced(text: str) -> str:
    """An empty line before each list that follows a line of text; `#` without a space begins no heading."""
    lines, code, before = [], False, ""
    for line in text.split("\n"):
        code ^= line.startswith("```")
        if not code and ITEM.match(line) and before and not (ITEM.match(before) or before.startswith(" ")):
            lines.append("")
        lines.append(line if code else re.sub(r"^#(?=[^# ])", r"\\#", line))
        before = line
    return "\n".join(lines)


def unicode_formulas(text: str) -> str:
    """`$…$` as code in Unicode."""

    def written(found):
        formula = " ".join(found[1].split())
        for pattern, plain in LATEX:
            formula = re.sub(pattern, plain, formula)
        return f"`{formula.strip()}`"

    return re.sub(r"(?<![\\`])\$([^$`]+)\$", written, text)
