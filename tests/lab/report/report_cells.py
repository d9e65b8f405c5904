"""Cells and settings as a sweep leaves them, made up: no sweep runs for the tests of the report."""

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from robust_rlhf_jax.lab.sweeps.sealed import CELLS
from robust_rlhf_jax.lab.sweeps.store import PartStore

FACTS = {
    "configuration": {"preset": "tiny", "families": ["uniform", "chain"], "n_pairs": 600},
    "wall_seconds": 75.4,
    "versions": {"jax": "0.10.2"},
    "date": "2026-11-21",
}


def make_cells(
    families=("uniform", "chain"),
    attacks=("flip_confident", "push_features"),
    epsilons=(0.0, 0.1, 0.2),
    seeds=5,
    algorithms=("standard", "uniform_coverage", "clean_reference"),
):
    """Rows of a sweep with gaps drawn at random."""
    rng = np.random.default_rng(0)
    return [
        {
            "family": family,
            "attack": attack,
            "epsilon": epsilon,
            "seed": seed,
            "algorithm": algorithm,
            "normalised_gap": float(rng.uniform()),
            "value": 1.0,
            "status": "converged" if rng.uniform() < 0.8 else "max_steps",
            "oracle_calls": int(rng.integers(1, 100)),
        }
        for family, attack, epsilon, algorithm, seed in itertools.product(
            families, attacks, epsilons, algorithms, range(seeds)
        )
    ]


def put(path, rows, schema=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema), path)


def put_part(folder, name, rows, kind=CELLS):
    """As a sweep that writes to `folder` leaves it."""
    PartStore(folder / "parts").write(name, rows, kind)
