"""Real votes on which of two short texts convinces more, bundled with the package as a preference file."""

import dataclasses
from pathlib import Path

from robust_rlhf_jax.io import Featuriser, Pairs, load_pairs

_FILE = Path(__file__).parent / "data_files" / "arguments.jsonl.xz"


def arguments_file() -> Path:
    """The bundled file of 19,324 votes of 2,115 raters on 3,874 pairs of arguments (JSON lines, xz), for `load_pairs`.

    A row is one vote: `prompt` (the topic), `response_a` and `response_b` (two arguments for the same side of it),
    `label` (a, b or tie: which convinces more) and `rater`. About five raters saw each pair; 4,275 votes are ties.
    The 252 arguments are of four debates of UKPConvArg1.

    Source: I. Habernal & I. Gurevych (2016), "Which argument is more convincing?", ACL, CC-BY-4.0
    (data_files/arguments.LICENCE.md).

    **Example:**

    >>> from robust_rlhf_jax.io import describe
    >>> from robust_rlhf_jax.preferences import arguments_file
    >>> found = describe(arguments_file())
    >>> found.n_pairs, found.n_ties, found.n_raters
    (19324, 4275, 2115)
    """
    return _FILE


def argument_pairs(featuriser: str | Featuriser = "hashed") -> Pairs:
    """The votes of `arguments_file` as `Pairs` [N = 19,324, p], with texts, raters, ties and features of the texts.

    Votes on the same two arguments share a group, so that folds keep them together. `robust-rlhf audit arguments` reads
    the same.

    **Arguments:** `featuriser`: as of `load_pairs`; its names say what the p features are.

    **Raises:** ValueError for an unknown featuriser; ImportError for "hashed" without scikit-learn (extra `cli`).

    **Source:** as `arguments_file`.

    **Example:**

    >>> from robust_rlhf_jax.preferences import argument_pairs
    >>> pairs = argument_pairs("format")
    >>> pairs.n_pairs, pairs.names[0], pairs.texts.prompt[0]
    (19324, 'log_words', 'ban-plastic-water-bottles_no-bad-for-the-economy')
    """
    return dataclasses.replace(load_pairs(_FILE, featuriser=featuriser), path=Path("arguments"))
