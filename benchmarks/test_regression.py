"""Huber's regression with a fixed factor beside the same steps in NumPy and PyTorch, as n and d grow."""

import jax
import jax.numpy as jnp
import pytest
from rivals import assert_same, rival_run
from samples import trimmed_rows

from robust_rlhf_jax.kernels import regression
from robust_rlhf_jax.kernels.linalg import pseudo_inverse_root, weighted_gram

MULTIPLE = 10**0.5
# The first fit and its residuals, and two products with Φ in every step.
READS = 2 + 2 * regression.HUBER_STEPS
SIZES = [(200_000, 20), (40_000, 20), (1_000_000, 20), (200_000, 6), (200_000, 60)]

huber_regression = jax.jit(regression.huber_regression)


def problem(n, d):
    """(Φᵀ [d, n], targets, weights, G^{-1/2}, the clip's multiple); a tenth of the targets is far off."""
    x, weights = trimmed_rows(n, d)
    k_theta, k_noise = jax.random.split(jax.random.key(2))
    targets = x @ jax.random.normal(k_theta, (d,)) + jax.random.normal(k_noise, (n,))
    targets = targets.at[: n // 10].add(100.0)
    root = pseudo_inverse_root(weighted_gram(x, weights))[0]
    return jax.block_until_ready((jnp.array(x.T), targets, weights, root, jnp.float32(MULTIPLE)))


def clip_level(residuals, weights, multiple):
    """`regression.clip_level` in words that NumPy and PyTorch share."""
    inside, scale = weights, None
    cautious = max(regression.CAUTION, min(1.0, regression.LEAST / float(multiple)))
    for times in (None, cautious, cautious, 1.0):
        if times is not None:
            inside = weights * (abs(residuals) <= times * multiple * scale)
        scale = (inside @ residuals**2 / inside.sum()) ** 0.5
    return multiple * scale


def by_host(columns, targets, weights, root, multiple):
    weighted = columns * weights
    w = root @ (root @ (weighted @ targets))
    clip = clip_level(targets - w @ columns, weights, multiple)
    for _ in range(regression.HUBER_STEPS):
        w = w + root @ (root @ (weighted @ (targets - w @ columns).clip(-clip, clip)))
    return (w,)


RIVALS = {"NumPy": by_host, "PyTorch": by_host}


def timed(measure, arguments, what):
    d, n = arguments[0].shape
    return measure(huber_regression, *arguments, what=what, size=f"n = {n:,}, d = {d}", work=(n, "rows"))


@pytest.mark.parametrize("rival", RIVALS)
def test_huber_regression(measure, beside, against_copy, rows, rival):
    arguments = problem(rows(1_000_000), 20)
    name, run = rival_run(rival, RIVALS, arguments)
    found = timed(measure, arguments, "`huber_regression`")
    assert_same((found,), run(), atol=1e-3)
    beside(lambda: huber_regression(*arguments), run, name=name)
    against_copy(READS * arguments[0].nbytes, f"{READS} × Φ")


@pytest.mark.parametrize(("n", "d"), SIZES)
def test_scaling(measure, rows, n, d):
    timed(measure, problem(rows(n), d), "`huber_regression`, scaling")
