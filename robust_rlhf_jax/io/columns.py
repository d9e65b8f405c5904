"""What a caller says of the columns of a file."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Columns:
    """Names of columns, each None where the file's own names decide, and what its labels mean.

    `chosen`, `rejected`: the two sides, texts or embeddings; with `label` the first and the second side. `label` may be
    "none": the first side always won. `rater`, `weight`, `tie`, `id`: who judged, how much it counts, whether it is a
    tie, which pair it is. `first_is`: the label that means the first side; `tie_is`: the one that means a tie; `scale`:
    the numbers at which the first and the second side are most certainly preferred; `ranking`: whether a list called
    `ranking` holds "ranks" or the "order" of the answers.
    """

    chosen: str | None = None
    rejected: str | None = None
    prompt: str | None = None
    label: str | None = None
    first_is: str | None = None
    rater: str | None = None
    weight: str | None = None
    tie: str | None = None
    id: str | None = None
    scale: tuple[float, float] | None = None
    tie_is: str | None = None
    ranking: str | None = None

    def names(self) -> dict[str, str]:
        """The columns that were named, by their part."""
        parts = ("chosen", "rejected", "prompt", "label", "rater", "weight", "tie", "id")
        return {part: name for part in parts if (name := getattr(self, part)) is not None}
