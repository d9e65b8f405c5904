"""Lets mkdocstrings show the doctests of a docstring as code: Markdown takes `>>>` for quotations."""

import re

from griffe import Extension

PROMPTS = re.compile(r"(?:^>>> .*\n?(?:^[^\n]+\n?)*)+", re.MULTILINE)


class FenceDoctests(Extension):
    """Puts a fence around each doctest."""

    def on_object(self, *, obj, **kwargs) -> None:
        if obj.docstring and ">>> " in obj.docstring.value:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    return PROMPTS.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text)
