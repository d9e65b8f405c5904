"""Preference files of texts as shards of embeddings, which come batch by batch and need not fit into memory."""

import copy
import dataclasses
import glob
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from robust_rlhf_jax.io import Columns, Featuriser, RewardHead, Texts
from robust_rlhf_jax.io.featurisers import LocalModel, make_featuriser
from robust_rlhf_jax.io.reward_head import loadable
from robust_rlhf_jax.io.text_pairs import TextPairs, text_pairs

from ._recut import check_rows
from .fingerprints import fingerprint_of
from .shards import FEATURES, ShardSource
from .unfinished_shards import UnfinishedShards, unfinished_shards
from .writing import check_new, in_type, type_named

# Pairs from which a featuriser that learns does so, at most; pairs of a shard, and pairs that are embedded at once.
LEARNT_FROM, PER_SHARD, BATCH = 20_000, 10_000, 512
SEED = 0
# Reports (what is done, pairs done, pairs in all).
Tell = Callable[[str, int, int], None]


def embedded(
    path: str | Path,
    folder: str | Path,
    *,
    featuriser: str | Featuriser = "hashed",
    columns: Columns | None = None,
    dtype: Any = None,
    rows_per_shard: int = PER_SHARD,
    skip_bad: float = 0,
    split: str | None = None,
    encoding: str | None = None,
    tell: Tell | None = None,
) -> ShardSource:
    """Embed both sides of every pair of texts in a file, write them as shards to a new folder, and open it.

    Files in CSV, JSON lines and Parquet whose rows are pairs are read in batches, of others the texts are in memory;
    embeddings are those of one shard at a time. The whole file is checked before anything is embedded. What was
    interrupted goes on with the first shard that is missing: until the end the shards are in `folder` with `.partial`
    behind its name. Beside them are `rows.npy`, the rows of the file, and where the file has them `raters.npy`,
    `groups.npy` and `ids.npy`. Ties and pairs of weight 0 are left out.

    **Arguments:**

    - `featuriser`: "hashed", "format", the folder of a local model, or a `Featuriser`, as of `io.load_pairs`. One that
      learns from texts, as "hashed" does, learns from 20,000 pairs at most.
    - `columns`, `skip_bad`, `split`, `encoding`: as of `io.load_pairs`.
    - `dtype`: float16, bfloat16, float32 or float64; None: float16 for a local model, else float32.
    - `tell(doing, done, total)` is called after every batch.

    **Raises:** as `io.load_pairs`; ValueError for a folder that is there already, for what is no `Featuriser`, for
    features that are not finite or that `dtype` cannot hold, and for a `.partial` folder of another file or other
    settings.

    **Example:**

    >>> import json, pathlib, tempfile
    >>> from robust_rlhf_jax.sources import embedded
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> rows = [{"prompt": "Hi", "chosen": "Hello!" * i, "rejected": "What?"} for i in range(1, 6)]
    >>> _ = (folder / "pairs.jsonl").write_text("\\n".join(map(json.dumps, rows)))
    >>> source = embedded(folder / "pairs.jsonl", folder / "shards", featuriser="format", rows_per_shard=2)
    >>> source.n_pairs, source.n_features, len(list((folder / "shards").glob("chosen*")))
    (5, 10, 3)
    """
    path, folder = Path(path), Path(folder)
    check_rows(rows_per_shard, "rows_per_shard")
    check_new(folder)
    made = _checked(make_featuriser(featuriser))
    kind = type_named(_usual_type(made) if dtype is None else dtype)
    assert kind is not None
    say = tell or (lambda doing, done, total: None)
    say("checking the file", 0, 0)
    pairs = text_pairs(path, columns, skip_bad=skip_bad, split=split, encoding=encoding)
    facts = {
        "file": _fingerprint(path), "pairs": pairs.n_pairs, "texts": pairs.digest, "dtype": str(kind),
        "rows": pairs.n_rows,
        "columns": dataclasses.asdict(columns or Columns()), "split": split, "encoding": encoding,
        "rows_per_shard": rows_per_shard, "featuriser": _settings_of(made),
    }  # fmt: skip
    with unfinished_shards(folder, facts) as unfinished:
        made = _learnt(made, pairs, unfinished, say)
        _write_missing(unfinished, made, pairs, rows_per_shard, kind, say)
        for name in ("rows", "raters", "ids", "groups"):
            values = getattr(pairs, name)
            if values is not None:
                unfinished.save(name, values)
        _head(made, unfinished.n_features()).save(unfinished.place / FEATURES)
        return ShardSource(unfinished.finish())


def _checked(made: Featuriser) -> Featuriser:
    """The featuriser; a local model is named so that its folder is found from any other one.

    **Raises:** ValueError for what is no featuriser, before any work.
    """
    lost = [part for part in ("names", "fit", "transform", "settings", "arrays") if not hasattr(made, part)]
    if isinstance(made, type) or not isinstance(made, Featuriser):
        what = f"a class, {made.__name__}" if isinstance(made, type) else f"without {' and '.join(lost)}"
        raise ValueError(f"featuriser is {what}: give an object with all that io.Featuriser has.")
    if isinstance(made, LocalModel):
        made = copy.copy(made)
        made.path = made.path.absolute()
    return made


def _write_missing(
    unfinished: UnfinishedShards,
    made: Featuriser,
    pairs: TextPairs,
    per_shard: int,
    kind: np.dtype,
    say: Tell,
) -> None:
    for number, texts in enumerate(pairs.batches(per_shard)):
        done, n = number * per_shard, len(texts.chosen)
        if unfinished.has(number, n):
            say("found embedded", done + n, pairs.n_pairs)
            continue
        sides: dict[str, list[np.ndarray]] = {"chosen": [], "rejected": []}
        for start in range(0, n, BATCH):
            rows = range(start, min(n, start + BATCH))
            for name, values in _sides(made, texts.take(rows)).items():
                _check_finite(values, pairs.rows[done + start :], name)
                sides[name].append(in_type(values, kind, "feature"))
            say("embedding", done + rows.stop, pairs.n_pairs)
        unfinished.save_shard(number, **{name: np.concatenate(parts) for name, parts in sides.items()})


def _sides(made: Featuriser, texts: Texts) -> dict[str, Float[np.ndarray, "m k"]]:
    sides = {"chosen": texts.chosen, "rejected": texts.rejected}
    return {name: np.asarray(made.transform(texts.prompt, side)) for name, side in sides.items()}


def _learnt(made: Featuriser, pairs: TextPairs, unfinished: UnfinishedShards, say: Tell) -> Featuriser:
    """The featuriser, fitted if it learns; an interrupted one as it was."""
    if not getattr(made, "LEARNS", True):
        return made
    kept = unfinished.place / FEATURES
    if kept.exists():
        found = RewardHead.load(kept).featuriser
        assert found is not None
        return found
    say("learning features", 0, 0)
    made.fit(_sample(pairs))
    if not made.names:
        raise ValueError(
            "the featuriser finds nothing in which the texts differ: give others, or another one."
        )
    if loadable(made):
        _head(made, len(made.names)).save(kept)
    return made


def _sample(pairs: TextPairs) -> Texts:
    """At most `LEARNT_FROM` of the pairs, the same in every call."""
    n = pairs.n_pairs
    size = min(n, LEARNT_FROM)
    places = np.sort(np.random.default_rng(SEED).choice(n, size, replace=False, shuffle=False))
    found, begin = Texts([], [], []), 0
    for texts in pairs.batches(BATCH):
        end = begin + len(texts.chosen)
        some = texts.take(places[(places >= begin) & (places < end)] - begin)
        for column, more in zip(_columns(found), _columns(some), strict=True):
            column.extend(more)
        begin = end
    return found


def _columns(texts: Texts) -> tuple[list[str], list[str], list[str]]:
    return texts.prompt, texts.chosen, texts.rejected


def _head(made: Featuriser, n_features: int) -> RewardHead:
    """The featuriser as a head of θ = 0; of one that a file cannot hold the names alone."""
    names = tuple(made.names) or tuple(f"e{number}" for number in range(n_features))
    return RewardHead(names, np.zeros(n_features, np.float32), made if loadable(made) else None)


def _check_finite(values: np.ndarray, rows: np.ndarray, name: str) -> None:
    bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(bad):
        raise ValueError(
            f"row {rows[bad[0]] + 1}: the {name} text has a feature that is not finite: mend the text, or give another "
            "featuriser."
        )


def _usual_type(made: Featuriser) -> str:
    return "float16" if made.settings().get("featuriser") == "model" else "float32"


def _settings_of(made: Featuriser) -> dict[str, Any]:
    """What the features are; of a model in a folder its files, too."""
    settings = dict(made.settings())
    if settings.get("featuriser") == "model":
        files = sorted(file for file in Path(settings["path"]).rglob("*") if file.is_file())
        settings["files"] = fingerprint_of(*files)
    return settings


def _fingerprint(path: Path) -> str:
    """The fingerprint of a file, or of all files of a folder or a pattern."""
    found = [Path(name) for name in glob.glob(str(path), recursive=True)]
    files = sorted(path.rglob("*")) if path.is_dir() else [path] if path.is_file() else sorted(found)
    return fingerprint_of(*(file for file in files if file.is_file()))
