"""What an audit reads: the bundled rail choices or a file, with the names of its features."""

import dataclasses
from pathlib import Path

import numpy as np
from jaxtyping import Int

from robust_rlhf_jax.preferences import (
    RAIL_FEATURES,
    PreferenceData,
    load,
    load_rail_choices,
    load_table,
    parquet,
    rail_people,
)


@dataclasses.dataclass(frozen=True)
class AuditSource:
    """Data, one name per entry of x, and who made each choice (None: pairs are independent)."""

    data: PreferenceData
    names: tuple[str, ...]
    groups: Int[np.ndarray, " N"] | None


def read_source(source: str) -> AuditSource:
    """`"rail"`, or a path that `load` reads.

    **Raises:** FileNotFoundError, ImportError and ValueError as `load`.
    """
    if source == "rail":
        return AuditSource(load_rail_choices(), RAIL_FEATURES, rail_people())
    path = Path(source)
    data = load(path)
    return AuditSource(data, load_table(path)[0] if _is_table(path) else _numbered(data), None)


def _is_table(path):
    suffix = path.suffix.lower()
    return suffix != ".npz" and not (suffix == ".parquet" and parquet.holds_arrays(path))


def _numbered(data):
    """f0, f1, … or, where θ differs between steps, h1.f0, …"""
    names = [f"f{i}" for i in range(data.reward_dim)]
    if data.stationary or data.horizon == 1:
        return tuple(names)
    return tuple(f"h{step + 1}.{name}" for step in range(data.horizon) for name in names)
