"""The overdispersion of raters' labels, beside sums over groups in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from robust_rlhf_jax.rewards.coordinates import unit_free
from robust_rlhf_jax.rewards.overdispersion import overdispersion

from .worlds import THETA, K, N, normal_pairs


@pytest.mark.slow
def test_group_by_group(x64):
    x, labels = normal_pairs(0)
    rng = np.random.default_rng(0)
    pairs = jax.jit(unit_free)(jnp.asarray(x), jnp.asarray(labels))
    t = np.linalg.solve(np.asarray(pairs.to_theta), THETA)
    y = np.asarray(pairs.rows)
    chance = scipy.special.expit(y @ t)
    known = (y.T * (chance * (1 - chance))) @ y + 0.01 * np.eye(K)
    jitted = jax.jit(overdispersion)
    for groups in (np.arange(N), np.arange(N) // 10, rng.integers(0, 7, N), np.zeros(N, int)):
        total = 0.0
        for g in set(groups.tolist()):
            score = ((1 - chance)[:, None] * y)[groups == g].sum(axis=0)
            total += score @ np.linalg.solve(known, score)
        found = jitted(pairs, jnp.asarray(t), jnp.asarray(groups, jnp.int32))
        np.testing.assert_allclose(found, max(total / K, 1.0), rtol=1e-9)


def test_one_axis(x64):
    """Two raters who contradict each other; columns of zeros are no axes."""
    x = np.zeros((N, K))
    x[:, 2] = 1.0
    raters = np.arange(N) % 2
    pairs = jax.jit(unit_free)(jnp.asarray(x), jnp.asarray(2.0 * raters - 1.0))
    found = jax.jit(overdispersion)(pairs, jnp.zeros(K), jnp.asarray(raters, jnp.int32))
    # Each has 500 scores of ±½ against an information of N/4.
    np.testing.assert_allclose(found, 2 * 250.0**2 / (N / 4 + 0.01), rtol=1e-9)
