"""What a caller says of the columns of a file."""

import dataclasses
from numbers import Real
from typing import Literal


@dataclasses.dataclass(frozen=True)
class Columns:
    """Names of columns, each None where the file's own names decide, and what its labels mean.

    Args:
        chosen: column of the preferred side, or of the first side where a label decides.
        rejected: column of the other side.
        prompt: column of the prompt.
        label: column that says which side won; "none" if the first side always won.
        first_is: the label that means the first side, where words do not tell.
        rater: column of who labelled each pair.
        weight: column of how much each pair counts.
        tie: column that says whether a pair is a tie.
        pair_id: column that names the pair; several rows of one are judgements of several raters.
        scale: the numbers of the label at which the first and the second side are surest; the middle is a tie.
        tie_is: the label that means a tie, where words do not tell.
        ranking: whether a list called ranking holds the rank of each answer or the answers in order.
        alternatives: the options that columns are called after, in the order in which the label numbers them.
        words: columns of words, or true and false, beside numbers are features: one for each word but the first.

    **Example:**

    >>> import pathlib, tempfile
    >>> from robust_rlhf_jax.io import Columns, load_pairs
    >>> file = pathlib.Path(tempfile.mkdtemp(), "votes.csv")
    >>> _ = file.write_text("left,right,verdict\\nYes.,Maybe so.,L\\nNo!,Never.,R\\n")
    >>> columns = Columns(chosen="left", rejected="right", label="verdict", first_is="L")
    >>> load_pairs(file, columns=columns, featuriser="format").labels.tolist()
    [1, -1]
    """

    chosen: str | None = None
    rejected: str | None = None
    prompt: str | None = None
    label: str | None = None
    first_is: str | None = None
    rater: str | None = None
    weight: str | None = None
    tie: str | None = None
    pair_id: str | None = None
    scale: tuple[float, float] | None = None
    tie_is: str | None = None
    ranking: Literal["ranks", "order"] | None = None
    alternatives: tuple[str, ...] | None = None
    words: bool = False

    def __post_init__(self):
        """**Raises:** ValueError for a scale that is no two numbers, and for alternatives that are one text."""
        if self.scale is not None:
            given = [] if isinstance(self.scale, str) else [*self.scale]
            if len(given) != 2 or not all(isinstance(end, Real) for end in given):
                raise ValueError(
                    f"scale={self.scale!r} must be two numbers, at which the first and the second side are surest."
                )
        if isinstance(self.alternatives, str):
            raise ValueError(f"alternatives={self.alternatives!r} is one text: give a tuple of names.")

    def names(self) -> dict[str, str]:
        """The columns that were named, by their part."""
        parts = ("chosen", "rejected", "prompt", "label", "rater", "weight", "tie", "pair_id")
        return {part: name for part in parts if (name := getattr(self, part)) is not None}
