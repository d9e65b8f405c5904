"""Lets mkdocstrings read docstrings as GitHub would."""

import sys
from pathlib import Path

from griffe import Extension

sys.path.insert(0, str(Path(__file__).parent))
from commonmark import fenced, spaced


class Docstrings(Extension):
    """Fences around doctests and empty lines before lists."""

    def on_object(self, *, obj, **kwargs) -> None:
        if obj.docstring:
            obj.docstring.value = spaced(fenced(obj.docstring.value))
