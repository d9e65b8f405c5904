"""Embedding of a file as a command: batches on a bar, and one sentence."""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from robust_rlhf_jax.sources import ShardSource, embedded
from robust_rlhf_jax.sources.unfinished_shards import FACTS, partial
from robust_rlhf_jax.terminal import marked

from .progress import shown_passes


def embed_command(path: Path, out: Path, quiet: bool = False, **options: Any) -> ShardSource:
    """`embedded` with its `options`, on a bar; print what was written.

    **Raises:** as `embedded`; KeyboardInterrupt that says how to go on.
    """
    from rich.console import Console

    begun = time.monotonic()
    try:
        with shown_passes(quiet) as tell:
            source = embedded(path, out, tell=tell, **options)
    except KeyboardInterrupt:
        if not partial(out).exists():
            raise
        raise KeyboardInterrupt(
            f"stopped: the same command goes on with the first shard that is missing in {partial(out)}."
        ) from None
    shards, seconds = len(source.sides[0]), time.monotonic() - begun
    said = (
        f"Wrote {source.n_pairs:,} pairs of {source.n_features:,} features in {shards:,} "
        f"{'shard' if shards == 1 else 'shards'} to {out}, in {seconds:.1f} s."
    )
    Console().print(marked(said + _left(out)), highlight=False)
    return source


def _left(out: Path) -> str:
    """How many rows of the file have no pair in `out`."""
    n_rows = json.loads((out / FACTS).read_text(encoding="utf-8"))["rows"]
    left = n_rows - len(np.unique(np.load(out / "rows.npy")))
    return (
        f" {left:,} of {n_rows:,} rows are left out: ties, pairs of weight 0, unusable rows." if left else ""
    )
