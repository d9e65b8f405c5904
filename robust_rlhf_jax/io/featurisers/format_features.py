"""Length and format of a text: what raters and shortcuts look at first."""

import re
from typing import Any

import numpy as np

from ..texts import Texts

_COUNTS = {
    "lines": re.compile(r"\n"),
    "bullets": re.compile(r"(?m)^\s*(?:[-*•]|\d+[.)])\s"),
    "headings": re.compile(r"(?m)^#{1,6}\s"),
    "bold": re.compile(r"\*\*"),
    "code": re.compile(r"`"),
    "digits": re.compile(r"\d"),
    "questions": re.compile(r"\?"),
    "exclamations": re.compile(r"!"),
    "capitals": re.compile(r"[A-Z]"),
}
FORMAT_NAMES = ("log_words", *(f"log_{name}" for name in _COUNTS))


class FormatFeatures:
    """log(1 + number of) words, lines, bullets, headings, bold and code marks, digits, ?, ! and capitals."""

    names = FORMAT_NAMES

    def fit(self, texts: Texts) -> tuple[np.ndarray, np.ndarray]:
        return self.transform(texts.prompt, texts.chosen), self.transform(texts.prompt, texts.rejected)

    def transform(self, prompts: list[str], responses: list[str]) -> np.ndarray:
        rows = [
            (len(text.split()), *(len(counted.findall(text)) for counted in _COUNTS.values()))
            for text in responses
        ]
        return np.log1p(np.asarray(rows, np.float64).reshape(-1, len(FORMAT_NAMES)))

    def settings(self) -> dict[str, Any]:
        return {"featuriser": "format"}

    def arrays(self) -> dict[str, np.ndarray]:
        return {}
