"""Which words two texts do not share, in order."""

import re
from difflib import SequenceMatcher

# Texts of more words are not aligned: the time grows with the square of the number.
MOST_WORDS = 600


def word_differences(first: str, second: str) -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]]:
    """Both texts as runs (text, whether it differs); the runs of each, put together, are the text.

    The longest common runs of words are alike (Ratcliff & Obershelp 1988); white space goes with the word before it.

    **Example:**

    >>> from robust_rlhf_jax.audit.page.word_differences import word_differences
    >>> word_differences("a red pot", "a blue pot")[0]
    [('a ', False), ('red ', True), ('pot', False)]
    """
    one, other = (re.findall(r"\S+\s*|^\s+", text) for text in (first, second))
    if max(len(one), len(other)) > MOST_WORDS:
        return [(first, False)], [(second, False)]
    keys = [[word.strip() for word in words] for words in (one, other)]
    runs: tuple[list, list] = ([], [])
    for kind, a, b, c, d in SequenceMatcher(None, *keys, autojunk=False).get_opcodes():
        for side, words in zip(runs, (one[a:b], other[c:d]), strict=True):
            if words:
                side.append(("".join(words), kind != "equal"))
    return runs
