"""Choices of real people and ways to corrupt them, for the studies that need a truth to be measured against."""

import csv
import gzip
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from studies import SHARED

from robust_rlhf_jax.preferences import load_rail_choices, rail_people

KINDS = ("flip_random", "flip_confident", "planted_near", "planted_far")
# Length of planted rows in whitened units, in typical lengths √k.
PLANTED_LENGTH = {"planted_near": 1.0, "planted_far": 10.0}


class RealSet(NamedTuple):
    """`x` [N, k]: differences, turned round at random; `labels` [N] ±1; `groups` [N]: who chose."""

    x: Float[np.ndarray, "N k"]
    labels: Float[np.ndarray, " N"]
    groups: Int[np.ndarray, " N"]


def real_sets(folder: Path = SHARED) -> dict[str, RealSet]:
    """The bundled rail choices, and the tables that lie in `folder`."""
    rail = load_rail_choices()
    sets = {"rail": RealSet(np.asarray(rail.differences()), np.asarray(rail.labels), rail_people())}
    for name in ("electricity", "swissmetro"):
        path = folder / f"{name}.csv.gz"
        if path.exists():
            sets[name] = _read(path)
    return sets


def _read(path) -> RealSet:
    with gzip.open(path, "rt") as file:
        header, *rows = csv.reader(file)
    values = np.asarray(rows, np.float64)
    k = (len(header) - 1) // 2
    labels = np.random.default_rng(0).choice([-1.0, 1.0], len(values))
    x = (values[:, 1 : 1 + k] - values[:, 1 + k :]) * labels[:, None]
    _, groups = np.unique(values[:, 0], return_inverse=True)
    return RealSet(x.astype(np.float32), labels.astype(np.float32), groups.astype(np.int32))


def fitted(x: Float[np.ndarray, "N k"], labels: Float[np.ndarray, " N"]) -> Float[np.ndarray, " k"]:
    """Maximum likelihood by Newton's method in float64."""
    x, theta = np.asarray(x, np.float64), np.zeros(x.shape[1])
    for _ in range(30):
        chance = 1 / (1 + np.exp(-x @ theta))
        hessian = (x * (chance * (1 - chance))[:, None]).T @ x
        theta += np.linalg.lstsq(hessian, x.T @ ((labels > 0) - chance), rcond=None)[0]
    return theta


def corrupt(
    rng: np.random.Generator, data: RealSet, kind: str, epsilon: float
) -> tuple[RealSet, Bool[np.ndarray, " N"]]:
    """(data, mask of the ⌊εN⌋ corrupted pairs); θ is the fit to the clean pairs.

    "flip_random" flips any labels, "flip_confident" those with the largest o·θᵀx. "planted_near" and "_far" replace
    random pairs by noisy copies of one row in the direction of θ, as long as a typical row or ten times as long, with
    the label that contradicts θ.
    """
    n, count = len(data.labels), int(epsilon * len(data.labels) + 1e-9)
    theta = fitted(data.x, data.labels)
    order = -data.labels * (data.x @ theta) if kind == "flip_confident" else rng.uniform(size=n)
    chosen = np.zeros(n, bool)
    chosen[np.argsort(order)[:count]] = True
    if kind not in PLANTED_LENGTH:
        return data._replace(labels=np.where(chosen, -data.labels, data.labels)), chosen
    planted, signs = planted_rows(rng, data.x, theta, count, PLANTED_LENGTH[kind])
    x, labels = data.x.copy(), data.labels.copy()
    x[chosen], labels[chosen] = planted, signs
    return data._replace(x=x, labels=labels), chosen


def planted_rows(rng, x, theta, count: int, typical_lengths: float):
    """(x [count, k], labels): copies of one row along θ in whitened units, with a tenth of noise, turned at random."""
    values, axes = np.linalg.eigh((x.T @ x).astype(np.float64) / len(x))
    root = axes * np.sqrt(np.maximum(values, 0.0)) @ axes.T
    t = root @ theta
    k = len(t)
    rows = np.sqrt(k) * (t / np.linalg.norm(t) + 0.1 * rng.normal(size=(count, k)) / np.sqrt(k))
    signs = rng.choice([-1.0, 1.0], count)
    return (typical_lengths * rows @ root * -signs[:, None]).astype(x.dtype), signs.astype(x.dtype)
