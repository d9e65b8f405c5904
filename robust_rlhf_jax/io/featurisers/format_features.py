"""Length and format of a text: what raters and shortcuts look at first."""

import re
from typing import Any

import numpy as np

from ..texts import Texts

BULLETS = re.compile(r"(?m)^\s*(?:[-*•]|\d+[.)])\s")
HEADINGS = re.compile(r"(?m)^#{1,6}\s")
DIGITS = re.compile(r"\d")
CAPITALS, ASCII_DIGITS = bytes(range(65, 91)), bytes(range(48, 58))
FORMAT_NAMES = (
    "log_words", "log_lines", "log_bullets", "log_headings", "log_bold", "log_code", "log_digits", "log_questions",
    "log_exclamations", "log_capitals",
)  # fmt: skip


class FormatFeatures:
    """log(1 + number of) words, lines, bullets, headings, bold and code marks, digits, ?, ! and capitals."""

    LEARNS = False

    names = FORMAT_NAMES

    def fit(self, texts: Texts) -> tuple[np.ndarray, np.ndarray]:
        return self.transform(texts.prompt, texts.chosen), self.transform(texts.prompt, texts.rejected)

    def transform(self, prompts: list[str], responses: list[str]) -> np.ndarray:
        rows = [_counted(text) for text in responses]
        return np.log1p(np.asarray(rows, np.float64).reshape(-1, len(FORMAT_NAMES)))

    def settings(self) -> dict[str, Any]:
        return {"featuriser": "format"}

    def arrays(self) -> dict[str, np.ndarray]:
        return {}


def _counted(text: str) -> tuple[int, ...]:
    """The numbers behind `FORMAT_NAMES`; expressions run only where their characters occur."""
    content = text.encode("utf-8", "surrogatepass")
    digits = (
        len(content) - len(content.translate(None, ASCII_DIGITS))
        if text.isascii()
        else len(DIGITS.findall(text))
    )
    listed = "-" in text or "*" in text or "•" in text or (digits and ("." in text or ")" in text))
    return (
        len(text.split()), text.count("\n"), len(BULLETS.findall(text)) if listed else 0,
        len(HEADINGS.findall(text)) if "#" in text else 0, text.count("**"), text.count("`"), digits, text.count("?"),
        text.count("!"), len(content) - len(content.translate(None, CAPITALS)),
    )  # fmt: skip
