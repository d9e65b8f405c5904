"""What an audit reads: a bundled set, arrays, or any preference file, as pairs with features."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from robust_rlhf_jax.io import Columns, Pairs, describe, load_pairs
from robust_rlhf_jax.io.descriptions import Description
from robust_rlhf_jax.preferences import PreferenceData, load
from robust_rlhf_jax.preferences.bundled import BUNDLED, BUNDLED_FILES
from robust_rlhf_jax.preferences.files import holds_arrays


def read_source(source: str, columns: Columns | None = None, **options: Any) -> Pairs:
    """The bundled set of that name, arrays that `save` wrote, or a file that `load_pairs` reads with its `options`.

    **Raises:** FileNotFoundError, ImportError and ValueError as `load` and `load_pairs`.
    """
    if source in BUNDLED:
        return BUNDLED[source]()
    if source in BUNDLED_FILES:
        pairs = load_pairs(BUNDLED_FILES[source], columns=columns, **options)
        return dataclasses.replace(pairs, path=Path(source))
    path = Path(source)
    if holds_arrays(path):
        data = load(path)
        assert isinstance(data, PreferenceData)
        return _pairs_of_arrays(path, data)
    return load_pairs(path, columns=columns, **options)


def describe_source(source: str, columns: Columns | None = None, **options: Any) -> Description:
    """What `read_source` understands of a file, without features of texts.

    **Raises:** as `read_source`; ValueError for bundled numbers or arrays, in which nothing needs to be understood.
    """
    if source in BUNDLED_FILES:
        found = describe(BUNDLED_FILES[source], columns=columns, **options)
        return dataclasses.replace(found, path=Path(source))
    if source in BUNDLED or holds_arrays(Path(source)):
        if source not in BUNDLED:
            load(Path(source))  # of other arrays it says what is missing
        raise ValueError(
            f"{source} holds arrays of trajectories as the package writes them: there are no columns to describe."
        )
    return describe(Path(source), columns=columns, **options)


def _pairs_of_arrays(path: Path, data: PreferenceData) -> Pairs:
    """Trajectories as pairs of which only the differences are known."""
    x, labels = np.asarray(data.differences()), np.asarray(data.labels)
    return Pairs.of_differences(x, labels, names=_numbered(data), path=path)


def _numbered(data: PreferenceData) -> tuple[str, ...]:
    """f0, f1, … or, where θ differs between steps, h1.f0, …"""
    names = [f"f{i}" for i in range(data.reward_dim)]
    if data.stationary or data.horizon == 1:
        return tuple(names)
    return tuple(f"h{step + 1}.{name}" for step in range(data.horizon) for name in names)
