"""What GitHub's Markdown understands and Python-Markdown does not: lists after a line of text, doctests as code."""

import re

PROMPTS = re.compile(r"(?:^>>> .*\n?(?:^[^\n]+\n?)*)+", re.MULTILINE)
ITEM = re.compile(r"(?:[-*]|\d+\.) ")


def fenced(text: str) -> str:
    """Each doctest in a fence: Markdown takes `>>>` for quotations."""
    return PROMPTS.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text)


def spaced(text: str) -> str:
    """An empty line before each list that follows a line of text."""
    lines, code, before = [], False, ""
    for line in text.split("\n"):
        code ^= line.startswith("```")
        if not code and ITEM.match(line) and before and not (ITEM.match(before) or before.startswith(" ")):
            lines.append("")
        lines.append(line)
        before = line
    return "\n".join(lines)
