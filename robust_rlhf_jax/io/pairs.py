"""`load_pairs`: any preference file as pairs with features, and who labelled them how."""

import dataclasses
import os
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Int

from .bad_cells import BadCell
from .columns import Columns
from .descriptions import Description, describe_draft
from .drafts import Draft, draft_pairs
from .featurisers import FEATURISERS, Featuriser, make_featuriser
from .parts import preferred_first
from .table import Source
from .texts import Texts


@dataclasses.dataclass(frozen=True)
class Pairs:
    """Preferences of a file, the preferred side called chosen (of a tie: the first).

    | field | shape | meaning |
    |---|---|---|
    | `path`, `format`, `schema` | | the file, its container, and the way in which its preferences are written |
    | `rows`, `n_rows` | [N], | the file's row of each pair, from 0, several times for several pairs; how many it has |
    | `kind`, `names` | | what the features are made of, and their names |
    | `chosen`, `rejected` | [N, p] | features of the two sides |
    | `texts` | or None | prompt, chosen and rejected text of each pair |
    | `strength` | [N] | how strong the preference is, 0 a tie; 1 where the file does not say |
    | `swapped` | [N] | whether the chosen side is the file's second one |
    | `raters`, `weights` | [N] or None | who labelled each pair, and how much it counts |
    | `ids`, `groups` | [N] or None | the file's name of the pair; which pairs hang together (one ranking, one id) |
    | `second_rows` | [N] or None | the file's row of each pair's second side, where it is another |
    | `featuriser` | or None | what made features of texts |
    | `unused`, `bad` | | columns that were not used, with the reason; cells of rows that were skipped |
    | `source`, `description` | or None | what an export needs; what was understood, to be shown |
    """

    path: Path
    format: str
    rows: Int[np.ndarray, " N"]
    n_rows: int
    kind: str
    names: tuple[str, ...]
    chosen: Float[np.ndarray, "N p"]
    rejected: Float[np.ndarray, "N p"]
    texts: Texts | None
    strength: Float[np.ndarray, " N"]
    swapped: Bool[np.ndarray, " N"]
    raters: np.ndarray | None = None
    weights: Float[np.ndarray, " N"] | None = None
    featuriser: Featuriser | None = None
    unused: dict[str, str] = dataclasses.field(default_factory=dict)
    bad: tuple[BadCell, ...] = ()
    ids: np.ndarray | None = None
    groups: Int[np.ndarray, " N"] | None = None
    schema: str = "columns"
    source: Source | None = None
    second_rows: Int[np.ndarray, " N"] | None = None
    description: Description | None = None

    @property
    def n_pairs(self) -> int:
        return len(self.rows)

    @property
    def n_skipped(self) -> int:
        """How many rows of the file were skipped because they are unusable."""
        return len({cell.row for cell in self.bad})

    @property
    def ties(self) -> Bool[np.ndarray, " N"]:
        return self.strength == 0

    @property
    def labels(self) -> Int[np.ndarray, " N"]:
        """+1 where the file's first side is preferred, −1 the second, 0 a tie."""
        return np.where(self.ties, 0, np.where(self.swapped, -1, 1))

    def differences(self) -> Float[np.ndarray, "N p"]:
        """chosen − rejected."""
        return np.asarray(self.chosen) - np.asarray(self.rejected)


def load_pairs(
    path: str | os.PathLike,
    *,
    columns: Columns | None = None,
    features: str = "auto",
    featuriser: str | Featuriser = "hashed",
    embeddings: tuple[str | os.PathLike, str | os.PathLike] | None = None,
    skip_bad: float = 0,
    split: str | None = None,
    encoding: str | None = None,
) -> Pairs:
    """Read the preferences of a file, of a folder of files, or of a pattern such as "data/*.parquet".

    The container is a name in `CONTAINERS` (CSV, JSON, Parquet, Arrow, arrays; texts also compressed), the way in which
    preferences are written one of `SCHEMAS`. What cannot be decided is refused, with the flag that decides it.

    **Arguments:**

    - `path`: the file. A `.npy` file "…chosen….npy" comes with "…rejected….npy".
    - `columns`: which column is what, and what its labels mean, where the file does not say (`Columns`).
    - `features`: "numeric" (`chosen_<name>`, `rejected_<name>`), "embeddings" (the same with lists of numbers),
      "texts" (`prompt`, `chosen`, `rejected`, texts or messages), "scores" (of reward models); "auto": embeddings,
      texts,
      numbers, scores, the first that the file has; scores before texts in RewardBench's output.
    - `featuriser`: what makes features of texts: a name in `FEATURISERS`, the path of a local model, or a `Featuriser`.
    - `embeddings`: two `.npy` files of shape [N, p], read in place of the file's own features.
    - `skip_bad`: how many rows may be unusable (below 1: which share of them) before the file is refused.
    - `split`: which split, of a folder that has several; `encoding`: of a text file that is not in UTF-8.

    **Returns:** `Pairs`.

    **Raises:** FileNotFoundError; ImportError without a package that the format needs; ValueError in one sentence that
    names the row and the column, or the flag that helps.

    **Example:**

    >>> import json, pathlib, tempfile
    >>> from robust_rlhf_jax.io import load_pairs
    >>> file = pathlib.Path(tempfile.mkdtemp(), "pairs.jsonl")
    >>> rows = [{"prompt": "Hi", "chosen_length": i, "rejected_length": 2} for i in range(3)]
    >>> _ = file.write_text("\\n".join(map(json.dumps, rows)))
    >>> load_pairs(file).differences()[:, 0].tolist()
    [-2.0, -1.0, 0.0]
    """
    draft = draft_pairs(path, columns, features, embeddings, skip_bad, split, encoding)
    return _featurised(draft, featuriser)


def describe(
    path: str | os.PathLike,
    *,
    columns: Columns | None = None,
    features: str = "auto",
    embeddings: tuple[str | os.PathLike, str | os.PathLike] | None = None,
    skip_bad: float = 0,
    split: str | None = None,
    encoding: str | None = None,
) -> Description:
    """What `load_pairs` understands of a file, with three of its pairs, without features of texts.

    **Raises:** as `load_pairs`.

    **Example:**

    >>> import pathlib, tempfile
    >>> from robust_rlhf_jax.io import describe
    >>> file = pathlib.Path(tempfile.mkdtemp(), "pairs.csv")
    >>> _ = file.write_text("prompt,response_a,response_b,winner\\nHi,Hello!,What?,model_a\\nBye,No,So long,B\\n")
    >>> found = describe(file)
    >>> found.n_pairs, found.roles["label"]
    (2, 'winner: words that name response_a or response_b')
    """
    return describe_draft(draft_pairs(path, columns, features, embeddings, skip_bad, split, encoding))


def _featurised(draft: Draft, featuriser: str | Featuriser) -> Pairs:
    path, made, numbers, names = draft.file.path, None, draft.numbers, draft.names
    if numbers is None:
        assert draft.texts is not None
        made = make_featuriser(featuriser)
        chosen, rejected = made.fit(draft.texts)
        names = made.names
        if not names:
            raise ValueError(
                f"{path}: featuriser {featuriser!r} finds nothing in which the texts differ: give others, or another "
                "featuriser"
            )
    else:
        chosen, rejected = preferred_first(numbers, draft.swapped)
    return Pairs(
        path, draft.file.format, draft.rows, draft.file.n_rows, draft.kind, tuple(names), chosen, rejected, draft.texts,
        draft.strength, draft.swapped, draft.raters, draft.weights, made, draft.unused, draft.bad,
        draft.ids, draft.groups,
        draft.mapped.schema, draft.file.source, draft.second_rows,
        describe_draft(draft),
    )  # fmt: skip


__all__ = ["FEATURISERS", "Columns", "Pairs", "describe", "load_pairs"]
