"""`load_pairs`: any preference file as pairs with features, and who labelled them how."""

import dataclasses
import os
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Int

from .bad_cells import BadCell, usable_rows
from .featurisers import FEATURISERS, Featuriser, make_featuriser
from .npy_pairs import nonfinite_cells, npy_pair, partner
from .parts import (
    numbers_of,
    people_of,
    preferred_first,
    repeated_ids,
    strengths,
    texts_of,
    turned,
    unused_columns,
)
from .reading import read_table
from .roles import Columns, NoSides, choose_kind, find_roles
from .table import Table
from .texts import Texts


@dataclasses.dataclass(frozen=True)
class Pairs:
    """Preferences of a file, the preferred side called chosen (of a tie: the first).

    | field | shape | meaning |
    |---|---|---|
    | `path`, `format` | | the file, and a name in `READERS`, or "npy" |
    | `partner` | or None | the other side's file, of two `.npy` files |
    | `rows`, `n_rows` | [N], | the file's rows that are used, from 0; how many it has |
    | `kind`, `names` | | what the features are made of, and their names |
    | `chosen`, `rejected` | [N, p] | features of the two sides |
    | `texts` | or None | prompt, chosen and rejected text of each pair |
    | `strength` | [N] | how strong the preference is, 0 a tie; 1 where the file does not say |
    | `swapped` | [N] | whether the chosen side is the file's second one |
    | `raters`, `weights` | [N] or None | who labelled each pair, and how much it counts |
    | `featuriser` | or None | what made features of texts |
    | `unused`, `bad` | | columns that were not used, with the reason; cells of rows that were skipped |
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
    partner: Path | None = None

    @property
    def n_pairs(self) -> int:
        return len(self.rows)

    @property
    def ties(self) -> Bool[np.ndarray, " N"]:
        return self.strength == 0

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
) -> Pairs:
    """Read the preferences of a CSV, JSON-lines or Parquet file, an Arrow data set, or a pair of `.npy` files.

    **Arguments:**

    - `path`: the file, or a folder that `datasets` saved. A `.npy` file "…chosen….npy" comes with "…rejected….npy".
    - `columns`: which column is what, where the names do not say (`Columns`).
    - `features`: "numeric" (`chosen_<name>`, `rejected_<name>`), "embeddings" (the same with lists of numbers),
      "texts" (`prompt`, `chosen`, `rejected`, texts or messages), "scores" (of reward models); "auto": the first of
      these that the file has, scores before texts in RewardBench's output.
    - `featuriser`: what makes features of texts: a name in `FEATURISERS`, the path of a local model, or a `Featuriser`.
    - `embeddings`: two `.npy` files of shape [N, p], read in place of the file's own features.
    - `skip_bad`: how many rows may be unusable (below 1: which share of them) before the file is refused.

    **Returns:** `Pairs`.

    **Raises:** FileNotFoundError; ImportError without a package that the format needs; ValueError in one sentence that
    names the row and the column.

    **Example:**

    >>> import json, pathlib, tempfile
    >>> from robust_rlhf_jax.io import load_pairs
    >>> file = pathlib.Path(tempfile.mkdtemp(), "pairs.jsonl")
    >>> rows = [{"prompt": "Hi", "chosen_length": i, "rejected_length": 2} for i in range(3)]
    >>> _ = file.write_text("\\n".join(map(json.dumps, rows)))
    >>> load_pairs(file).differences()[:, 0].tolist()
    [-2.0, -1.0, 0.0]
    """
    path = Path(path)
    if not 0 <= skip_bad < np.inf:
        raise ValueError(f"skip_bad={skip_bad} must be 0 or more: a count of rows, or below 1 a share.")
    if path.suffix.lower() == ".npy":
        return _from_arrays(path, partner(path) if embeddings is None else Path(embeddings[1]), skip_bad)
    table = read_table(path)
    try:
        return _pairs(table, columns or Columns(), features, featuriser, embeddings, skip_bad)
    except NoSides:
        raise ValueError(
            f"{path} has no column chosen_<name> or rejected_<name>: name features so, or give texts as chosen and "
            "rejected."
        ) from None
    except ValueError as error:
        text = str(error)
        raise ValueError(text if text.startswith(str(path)) else f"{path}: {text}") from None


def _pairs(table: Table, asked: Columns, kind, featuriser, embeddings, skip_bad) -> Pairs:
    if kind not in ("auto", *(kinds := ("numeric", "embeddings", "texts", "scores"))):
        raise ValueError(f"features={kind!r} is unknown: choose one of auto, {', '.join(kinds)}.")
    roles = find_roles(table, asked)
    kind = "embeddings" if embeddings else choose_kind(roles, kind)
    bad = list(table.bad)
    strength, more = strengths(table, roles, asked)
    bad += more
    texts, more = texts_of(table, roles)
    bad += more
    numbers, names = None, ()
    if embeddings:
        numbers = npy_pair(Path(embeddings[0]), Path(embeddings[1]), table.n_rows)
        bad += nonfinite_cells(numbers, map(str, embeddings))
        names = tuple(f"e{i}" for i in range(numbers[0].shape[1]))
    elif kind != "texts":
        numbers, names, more = numbers_of(table, roles.numbers[kind])
        bad += more
    raters, weights, more = people_of(table, roles)
    bad += more + repeated_ids(table, roles)
    rows = usable_rows(table.path, table.n_rows, bad, skip_bad)
    kept = set(rows.tolist())
    texts = None if texts is None else texts.take(rows)
    made = None
    if numbers is None:
        assert texts is not None
        made = make_featuriser(featuriser)
        numbers, names = made.fit(texts), made.names
        if not names:
            raise ValueError(
                f"featuriser {featuriser!r} finds nothing in which the texts differ: give others, or another featuriser"
            )
    else:
        numbers = tuple(side if len(rows) == table.n_rows else side[rows] for side in numbers)
    swapped = strength[rows] < 0
    chosen, rejected = preferred_first(numbers, swapped)
    return Pairs(
        table.path, table.format, rows, table.n_rows, kind, tuple(names), chosen, rejected,
        None if texts is None else turned(texts, swapped), np.abs(strength[rows]), swapped,
        None if raters is None else raters[rows], None if weights is None else weights[rows], made,
        unused_columns(table, roles, kind), tuple(cell for cell in bad if cell.row not in kept),
    )  # fmt: skip


def _from_arrays(path: Path, other: Path, skip_bad: float) -> Pairs:
    sides = npy_pair(path, other)
    n_rows, p = sides[0].shape
    bad = nonfinite_cells(sides, ("the chosen side", "the rejected side"))
    rows = usable_rows(path, n_rows, bad, skip_bad)
    # All rows stay memory-mapped.
    chosen, rejected = (side if len(rows) == n_rows else side[rows] for side in sides)
    n, names = len(rows), tuple(f"e{i}" for i in range(p))
    return Pairs(
        path, "npy", rows, n_rows, "embeddings", names, chosen, rejected,
        None, np.ones(n), np.zeros(n, bool), bad=tuple(bad), partner=other,
    )  # fmt: skip


__all__ = ["FEATURISERS", "Columns", "Pairs", "load_pairs"]
