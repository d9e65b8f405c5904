"""The curvature of all pairs from a sample, against that of all pairs."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.rewards.coordinates import unit_free
from robust_rlhf_jax.rewards.streamed.curvature import curvature_factor, mean_variance, sample_curvature


def world(n=20_000, r=6):
    rng = np.random.default_rng(4)
    pairs = unit_free(jnp.asarray(rng.standard_t(5, size=(n, r)), jnp.float32), jnp.ones(n))
    margins = pairs.margins(jnp.asarray(rng.normal(size=r), jnp.float32))
    return pairs, margins, np.sort(rng.choice(n, 1_000, replace=False))


def some_of(pairs, places):
    return eqx.tree_at(
        lambda p: (p.rows, p.informative), pairs, (pairs.rows[places], pairs.informative[places])
    )


def dense(pairs, wf):
    rows = np.asarray(pairs.rows, np.float64)
    return (rows * np.asarray(wf, np.float64)[:, None]).T @ rows / len(rows)


def estimated(pairs, margins, weights, places):
    sample = sample_curvature(some_of(pairs, places))
    mean = mean_variance(margins, weights, len(margins))
    return np.asarray(
        curvature_factor(sample, margins[places], weights[places], mean, jnp.zeros(pairs.rows.shape[1]))
    )


@pytest.mark.slow
def test_exact_where_all_pairs_count_alike():
    pairs, margins, places = world()
    factor = estimated(pairs, 0.0 * margins, jnp.ones_like(margins), places)
    np.testing.assert_allclose(factor @ factor.T, 0.25 * np.eye(6), atol=1e-3)


@pytest.mark.slow
def test_near_that_of_all_pairs():
    pairs, margins, places = world()
    p = 1 / (1 + np.exp(-np.asarray(margins, np.float64)))
    expected = dense(pairs, p * (1 - p))
    factor = estimated(pairs, margins, jnp.ones_like(margins), places)
    ratio = np.linalg.eigvals(np.linalg.solve(expected, factor @ factor.T)).real
    assert ratio.min() > 0.8
    assert ratio.max() < 1.25


def test_a_direction_that_the_sample_does_not_show_is_known_as_the_others_are():
    pairs, margins, places = world()
    rows = pairs.rows.at[:, 0].set(0.0).at[0, 0].set(len(margins) ** 0.5)
    pairs = eqx.tree_at(lambda p: p.rows, pairs, rows)
    places = places[places > 0]
    factor = estimated(pairs, 0.0 * margins, jnp.ones_like(margins), places)
    np.testing.assert_allclose((factor @ factor.T)[0, 0], 0.25, atol=0.01)
