"""Labelled differences of more columns than `WIDE`, small enough for dense references."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from robust_rlhf_jax.rewards.coordinates import WIDE, unit_free

N, K = 700, WIDE + 12
THETA = np.random.default_rng(1).normal(size=K) * 2.0 / np.sqrt(K)
whitened = jax.jit(unit_free)


@functools.cache
def _turn():
    return np.linalg.qr(np.random.default_rng(2).normal(size=(K, K)))[0]


@functools.cache
def wide_pairs(seed=0, planted=0, heavy=False):
    """(x [N, K], labels), the first `planted` far out at one point against θ; Student's t of 3 if `heavy`."""
    rng = np.random.default_rng(seed)
    x = rng.standard_t(3, size=(N, K)) if heavy else rng.normal(size=(N, K)) / np.sqrt(np.arange(1, K + 1))
    x = x @ _turn()
    theta = THETA * 2.0 / np.std(x @ THETA)
    labels = np.where(rng.uniform(size=N) < 1.0 / (1.0 + np.exp(-x @ theta)), 1.0, -1.0)
    far = 2.0 * np.median(np.linalg.norm(x, axis=1))
    x[:planted], labels[:planted] = -far * theta / np.linalg.norm(theta), 1.0
    for part in (x, labels):
        part.flags.writeable = False
    return x, labels


def unit_free_pairs(dtype=jnp.float32, **given):
    return whitened(*(jnp.asarray(part, dtype) for part in wide_pairs(**given)))
