"""Splits of a data set in one JSON document: `{"train": […], "test": […]}`."""

import re
from collections.abc import Callable
from typing import Any

# Also train_prefs and test_sft.
SPLIT = re.compile(
    r"(?:train|test|valid|validation|val|dev|eval|evaluation|held_?out)(?:ing)?(?:[_.-]\w+)?", re.I
)


def splits_in(whole: Any, holds_rows: Callable[[Any], bool]) -> list[str]:
    """The keys of an object that are called as splits are and hold rows; none where another key holds rows, too.

    **Example:**

    >>> from robust_rlhf_jax.io.containers.json_splits import splits_in
    >>> splits_in({"version": 1, "train": [{"a": 1}], "test": [{"a": 2}]}, lambda value: isinstance(value, list))
    ['train', 'test']
    """
    if not isinstance(whole, dict):
        return []
    rows = [key for key, value in whole.items() if value and holds_rows(value)]
    return rows if all(SPLIT.fullmatch(key) for key in rows) else []
