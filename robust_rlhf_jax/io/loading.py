"""From a file to `Pairs`: read its rows, know what its columns mean, take its cells, make features of its texts."""

import dataclasses
import os
from pathlib import Path
from typing import Any

import numpy as np

from .bad_cells import check_skip_bad, usable_rows
from .columns import Columns
from .containers.array_files import nonfinite_cells, npy_pair
from .descriptions import Description, describe_pairs
from .featurisers import Featuriser, make_featuriser
from .flags_in_python import flags_in_python
from .in_memory import table_in_memory
from .missing_sides import advice
from .pairs import Pairs
from .reading import read_table
from .role_cells import (
    groups_of,
    ids_of,
    numbers_of,
    other_pairs_of_an_id,
    people_of,
    preferred_first,
    strengths,
    texts_of,
    turned,
    unused_columns,
)
from .schemas import map_table
from .schemas.base import Roles
from .schemas.numbers import NoSides, choose_kind
from .table import Table
from .texts import check_no_files


def load_pairs(
    path: str | os.PathLike | Any,
    *,
    columns: Columns | None = None,
    features: str = "auto",
    featuriser: str | Featuriser = "hashed",
    embeddings: tuple[str | os.PathLike, str | os.PathLike] | None = None,
    skip_bad: float = 0,
    split: str | None = None,
    encoding: str | None = None,
) -> Pairs:
    """Read the preferences of a file, a folder of files, a pattern such as "data/*.parquet", or rows in memory.

    The container is a name in `CONTAINERS` (CSV, JSON, Parquet, Arrow, arrays; texts also compressed), the way in which
    preferences are written one of `SCHEMAS`. What cannot be decided is refused, with the flag that decides it.

    **Arguments:**

    - `path`: the file; a `.npy` file "…chosen….npy" comes with "…rejected….npy". Or the rows themselves: a frame of
      pandas or Polars, a pyarrow table, a `datasets.Dataset`, a dict of columns, or a list of dicts. `Pairs.rows` says
      which row each pair comes from.
    - `columns`: which column is what, and what its labels mean, where the file does not say (`Columns`).
    - `features`: "numeric" (`chosen_<name>`, `rejected_<name>`), "embeddings" (the same with lists of numbers),
      "texts" (`prompt`, `chosen`, `rejected`, texts or messages), "scores" (of reward models); "auto": embeddings,
      texts, numbers, scores, the first that the file has; scores before texts in RewardBench's output.
    - `featuriser`: what makes features of texts: a name in `FEATURISERS`, the path of a local model, or a `Featuriser`.
    - `embeddings`: two `.npy` files of shape [N, p], read in place of the file's own features.
    - `skip_bad`: how many rows may be unusable (below 1: which share of them) before the file is refused.
    - `split`: which split, of a folder or a JSON document that has several; `encoding`: of a text file that is not in
      UTF-8.

    **Returns:** `Pairs`.

    **Raises:** FileNotFoundError; ImportError without a package that the format needs; ValueError in one sentence that
    names the row and the column, or the flag that helps; TypeError for what holds no rows.

    **Example:**

    >>> import json, pathlib, tempfile
    >>> from robust_rlhf_jax.io import load_pairs
    >>> file = pathlib.Path(tempfile.mkdtemp(), "pairs.jsonl")
    >>> rows = [{"prompt": "Hi", "chosen_length": i, "rejected_length": 2} for i in range(3)]
    >>> _ = file.write_text("\\n".join(map(json.dumps, rows)))
    >>> load_pairs(file).differences()[:, 0].tolist()
    [-2.0, -1.0, 0.0]
    >>> load_pairs(rows).differences()[:, 0].tolist()
    [-2.0, -1.0, 0.0]
    """
    return featurised(read_pairs(path, columns, features, embeddings, skip_bad, split, encoding), featuriser)


def describe(path: str | os.PathLike | Any, **reading: Any) -> Description:
    """What `load_pairs` understands of a file, with three of its pairs, without features of texts.

    **Arguments:** `reading`: as of `load_pairs`, less `featuriser`.

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
    found = read_pairs(path, **reading).description
    assert found is not None
    return found


@flags_in_python()
def read_pairs(
    path: str | os.PathLike | Any,
    columns: Columns | None = None,
    features: str = "auto",
    embeddings: tuple[str | os.PathLike, str | os.PathLike] | None = None,
    skip_bad: float = 0,
    split: str | None = None,
    encoding: str | None = None,
) -> Pairs:
    """What `load_pairs` reads, without features of texts: [N, 0].

    **Raises:** as `load_pairs`.
    """
    check_skip_bad(skip_bad)
    if not isinstance(columns, Columns | None):
        raise TypeError(
            f"columns is of the type {type(columns).__name__}: give io.Columns(label=…) or the like."
        )
    if isinstance(path, str | os.PathLike):
        path = Path(path)
        partner = embeddings[1] if embeddings is not None and path.suffix.lower() == ".npy" else None
        table = read_table(path, split=split, encoding=encoding, partner=partner)
        embeddings = None if partner else embeddings
    else:
        table = table_in_memory(path, split)
    path = table.path
    if not table.names and table.bad:
        first = table.bad[0]
        raise ValueError(f"{path} has no row that can be read: row {first.row + 1} {first.reason}.")
    try:
        return _pairs_of(table, columns or Columns(), features, embeddings, skip_bad)
    except NoSides:
        raise ValueError(f"{path}{advice(table)}") from None
    except ValueError as error:
        text = str(error)
        text = text if text.startswith(str(path)) else f"{path}: {text}"
        raise ValueError(text if text.endswith(".") else f"{text}.") from None


def _pairs_of(file: Table, asked: Columns, kind: str, embeddings, skip_bad: float) -> Pairs:
    mapped = map_table(file, asked)
    table, roles = mapped.table, mapped.roles
    sides = None if roles.text is None else (roles.text[1], roles.text[2])
    kind = "embeddings" if embeddings else choose_kind(roles.numbers, sides, kind)
    bad = list(table.bad)
    strength, more = strengths(table, roles)
    bad += more
    texts, more = texts_of(table, roles)
    bad += more
    numbers, names, more = _numbers(table, roles, kind, embeddings)
    bad += more
    raters, weights, more = people_of(table, roles)
    ids = ids_of(table, roles)
    bad += more + other_pairs_of_an_id(ids, texts, raters, roles.id, asked.pair_id is not None)
    what = "rows" if mapped.origin is None else "pairs"
    kept = usable_rows(file.path, table.n_rows, bad, skip_bad, mapped.in_file, what)
    groups = groups_of(table, roles, ids, texts, raters)
    swapped = strength[kept] < 0
    raters, weights, ids, groups = (None if v is None else v[kept] for v in (raters, weights, ids, groups))
    texts = None if texts is None else turned(texts.take(kept), swapped)
    # If all rows are kept and none is turned, numbers stay memory-mapped.
    every = len(kept) == table.n_rows
    chosen, rejected = preferred_first(numbers if every else (numbers[0][kept], numbers[1][kept]), swapped)
    usable = set(kept.tolist())
    unused = unused_columns(file, roles, kind, mapped.used)
    _check_keys(file, unused)
    pairs = Pairs(
        chosen, rejected, swapped=swapped, strength=np.abs(strength[kept]), names=tuple(names), raters=raters,
        weights=weights, ids=ids, groups=groups, texts=texts, kind=kind, path=file.path, format=file.format,
        schema=mapped.schema, rows=kept if mapped.origin is None else mapped.origin[kept], n_rows=file.n_rows,
        second_rows=None if mapped.second is None else mapped.second[kept],
        source=file.source if file.source.files else None,
        columns=file.names, unused=unused,
        bad=tuple(mapped.in_file(cell) for cell in bad if cell.row not in usable),
    )  # fmt: skip
    return dataclasses.replace(pairs, description=describe_pairs(pairs, file, mapped))


def _numbers(table: Table, roles: Roles, kind: str, embeddings):
    """(Both sides' numbers, their names, bad cells); of texts no columns."""
    if embeddings:
        numbers = npy_pair(Path(embeddings[0]), Path(embeddings[1]), table.n_rows)
        bad = nonfinite_cells(numbers, [str(name) for name in embeddings])
        return numbers, [f"e{i}" for i in range(numbers[0].shape[1])], bad
    if kind == "texts":
        return (np.zeros((table.n_rows, 0)),) * 2, [], []
    return numbers_of(table, roles.numbers[kind])


def _check_keys(file: Table, unused: dict[str, str]) -> None:
    """**Raises:** ValueError for a key of JSON that is used and that a row has twice, with two values."""
    for key, row in file.source.how.get("twice", {}).items():
        if key not in unused:
            raise ValueError(
                f"{file.path} has the key {key!r} twice in row {row + 1}, with two values: rename one."
            )


def featurised(pairs: Pairs, featuriser: str | Featuriser) -> Pairs:
    """The pairs with features of their texts, where the features are to be made of those."""
    if pairs.kind != "texts":
        return pairs
    assert pairs.texts is not None
    if isinstance(featuriser, str):  # one of the caller's own may open the files
        check_no_files(pairs.texts, str(pairs.path))
    made = make_featuriser(featuriser)
    chosen, rejected = made.fit(pairs.texts)
    if not made.names and len(pairs.rows) == 1 and pairs.texts.chosen != pairs.texts.rejected:
        raise ValueError(
            f"{pairs.path} has one pair, whose words make no feature by themselves: give two pairs or more."
        )
    if not made.names:
        raise ValueError(
            f"{pairs.path}: featuriser {featuriser!r} finds nothing in which the texts differ: give others, or another "
            "featuriser"
        )
    return dataclasses.replace(
        pairs, chosen=chosen, rejected=rejected, names=tuple(made.names), featuriser=made
    )
