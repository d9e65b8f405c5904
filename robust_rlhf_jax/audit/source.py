"""What an audit reads: a bundled set, arrays, or any preference file, as pairs with features."""

from pathlib import Path

import numpy as np

from robust_rlhf_jax.io import Columns, Pairs, load_pairs
from robust_rlhf_jax.preferences import PreferenceData, load, parquet
from robust_rlhf_jax.preferences.bundled import BUNDLED
from robust_rlhf_jax.preferences.tables import existing_file


def read_source(source: str, columns: Columns | None = None, **options) -> Pairs:
    """The bundled set of that name, arrays that `save` wrote, or a file that `load_pairs` reads with its `options`.

    **Raises:** FileNotFoundError, ImportError and ValueError as `load` and `load_pairs`.
    """
    if source in BUNDLED:
        own = BUNDLED[source]
        return pairs_of_arrays(Path(source), own.load(), own.features, own.people())
    path = Path(source)
    if _holds_arrays(path):
        data = load(path)
        return pairs_of_arrays(path, data, _numbered(data))
    if path.is_file() and path.suffix.lower() == ".json":
        raise ValueError(f"{path}: suffix '.json' is not read: write one object per line, as .jsonl.")
    return load_pairs(path, columns=columns, **options)


def pairs_of_arrays(path: Path, data: PreferenceData, names: tuple[str, ...], raters=None) -> Pairs:
    """Differences as pairs of an option and nothing: what trajectories have in common plays no part."""
    x = np.asarray(data.differences() * data.labels[:, None])
    n = len(x)
    swapped = np.asarray(data.labels) < 0
    return Pairs(
        path, "arrays", np.arange(n), n, "arrays", names, x, np.zeros_like(x), None, np.ones(n), swapped,
        raters=raters,
    )  # fmt: skip


def _holds_arrays(path: Path) -> bool:
    suffix = path.suffix.lower()
    if suffix == ".npz":
        return True
    if suffix != ".parquet" or path.is_dir():
        return False
    existing_file(path, (".parquet",))
    with open(path, "rb") as file:
        if file.read(4) != b"PAR1":  # `load_pairs` says what it is instead
            return False
    return parquet.holds_arrays(path)


def _numbered(data: PreferenceData) -> tuple[str, ...]:
    """f0, f1, … or, where θ differs between steps, h1.f0, …"""
    names = [f"f{i}" for i in range(data.reward_dim)]
    if data.stationary or data.horizon == 1:
        return tuple(names)
    return tuple(f"h{step + 1}.{name}" for step in range(data.horizon) for name in names)
