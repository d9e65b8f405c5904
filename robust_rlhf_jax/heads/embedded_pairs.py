"""The pairs of a data set as differences of a model's embeddings, in memory or in shards on the disk."""

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from robust_rlhf_jax.sources import ArraySource, GeneratedSource, PairSource, write_shards

# A batch of inputs → its embeddings [m, d], of NumPy, JAX or torch.
Embed = Callable[[Any], Any]
ROWS_PER_SHARD = 100_000


@contextlib.contextmanager
def embedded_pairs(
    embed: Embed, chosen: Any, rejected: Any, batch: int, folder: Path | None
) -> Iterator[PairSource]:
    """A block that gets the pairs, embedded once; shards are in a scratch folder in `folder`, removed at its end.

    **Raises:** ValueError for embeddings that are no finite [m, d], one row for each input.
    """
    if folder is None:
        yield ArraySource(np.concatenate(list(differences(embed, chosen, rejected, batch))))
        return
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="embedded-", dir=folder) as scratch:
        source = GeneratedSource(lambda: differences(embed, chosen, rejected, batch), len(chosen))
        yield write_shards(source, Path(scratch) / "pairs", rows_per_shard=ROWS_PER_SHARD)


def differences(embed: Embed, chosen: Any, rejected: Any, batch: int) -> Iterator[Float[np.ndarray, "m d"]]:
    """Embeddings of the chosen inputs less those of the rejected ones, batch by batch."""
    for start in range(0, len(chosen), batch):
        cut = slice(start, start + batch)
        rows = min(batch, len(chosen) - start)
        first, second = (_embedded(embed, side[cut], rows) for side in (chosen, rejected))
        if first.shape != second.shape:
            raise ValueError(
                f"embed gave {first.shape} for chosen and {second.shape} for rejected inputs: give [m, d] for both."
            )
        yield first - second


def _embedded(embed: Embed, inputs: Any, rows: int) -> Float[np.ndarray, "m d"]:
    """`rows`: how many `inputs` are, which a slice of a `datasets.Dataset`, a dict of columns, does not say."""
    values = as_numpy(embed(inputs))
    if values.ndim != 2 or len(values) != rows:
        raise ValueError(f"embed gave {values.shape} for {rows} inputs: give [m, d], a row for each input.")
    if not np.isfinite(values).all():
        raise ValueError("embed gave numbers that are not finite: has the training diverged?")
    return values


def as_numpy(values: Any) -> np.ndarray:
    """An array of NumPy, JAX or torch on any device in float32, or in float64 where it is: half precision included."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = (values if values.element_size() == 8 else values.float()).numpy()
    values = np.asarray(values)
    return values if values.dtype == np.float64 else values.astype(np.float32)
