"""The exact weighted quantile by bisection beside partitions and sorts, and how it scales with n."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rivals import assert_same, rival_run, score_above_by_sort

from robust_rlhf_jax.kernels import quantile

KEPT = 0.9
PASSES = 32  # single precision, a value and its weight in each

upper_threshold = jax.jit(quantile.upper_threshold)
keep_top = jax.jit(quantile.keep_top)


def values(n):
    """(x [n], weights of one, nine tenths of their mass)."""
    x = jax.random.normal(jax.random.key(0), (n,))
    return jax.block_until_ready((x, jnp.ones(n), jnp.float32(int(KEPT * n))))


def threshold_by_partition(x, weights, mass):
    place = len(x) - int(mass)
    return (np.partition(x, place)[place],)


def threshold_by_sort(x, weights, mass):
    return (score_above_by_sort(x, weights, mass),)


def threshold_by_torch(x, weights, mass):
    return (x.kthvalue(len(x) - int(mass) + 1).values,)


def top_by_partition(x, weights, mass):
    kept = np.zeros_like(x)
    kept[np.argpartition(x, len(x) - int(mass))[len(x) - int(mass) :]] = 1
    return (kept,)


def top_by_torch(x, weights, mass):
    import torch

    return (torch.zeros_like(x).index_fill_(0, torch.topk(x, int(mass), sorted=False).indices, 1.0),)


# Partitions know no weights, which are one here; the sort takes them.
THRESHOLDS = {
    "`np.partition`": ("NumPy", threshold_by_partition),
    "`np.argsort`, weights summed": ("NumPy", threshold_by_sort),
    "`torch.kthvalue`": ("PyTorch", threshold_by_torch),
}
TOPS = {"`np.argpartition`": ("NumPy", top_by_partition), "`torch.topk`": ("PyTorch", top_by_torch)}


def in_turns(measure, beside, kernel, name, arrays, way, rival, function):
    """The kernel on `arrays` beside the rival, which must find the same."""
    library, run = rival_run(rival, {rival: function}, arrays)
    n = len(arrays[0])
    found = measure(kernel, *arrays, what=name, size=f"n = {n:,}", work=(n, "rows"))
    assert_same((found,), run())
    # NumPy's partitions and sorts use no BLAS.
    beside(lambda: kernel(*arrays), run, name=f"{way}, 1 thread" if rival == "NumPy" else f"{way}: {library}")


@pytest.mark.parametrize("way", THRESHOLDS)
def test_upper_threshold(measure, beside, rows, way):
    arrays = values(rows(1_000_000))
    in_turns(measure, beside, upper_threshold, "`upper_threshold`", arrays, way, *THRESHOLDS[way])


@pytest.mark.parametrize("way", TOPS)
def test_keep_top(measure, beside, rows, way):
    in_turns(measure, beside, keep_top, "`keep_top`", values(rows(1_000_000)), way, *TOPS[way])


@pytest.mark.parametrize("n", [100_000, 1_000_000, 10_000_000])
def test_scaling(measure, against_copy, rows, n):
    """Above a million rows the passes come from memory, below from the cache, which no copy is held against."""
    arrays = values(rows(n))
    found = measure(
        upper_threshold,
        *arrays,
        what="`upper_threshold`, scaling",
        size=f"n = {rows(n):,}",
        work=(rows(n), "rows"),
    )
    assert np.isfinite(found)
    if n > 1_000_000:
        against_copy(PASSES * 8 * rows(n), f"{PASSES} passes of 8 bytes a row")
