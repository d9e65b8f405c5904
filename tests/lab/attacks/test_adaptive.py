"""The white-box attack: its derivative, what it plants, and that it is worth its time."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax import changed_pairs, sample_preferences
from robust_rlhf_jax.lab.attacks import adaptive, fitted_theta, push_features
from robust_rlhf_jax.lab.attacks._adaptive import soft_greedy_policy
from robust_rlhf_jax.mdp import normalised_gap, optimal_policy
from robust_rlhf_jax.rewards.registry import REWARD_ESTIMATORS

# Compiled carelessly: at this size code is compiled for longer than it runs.
quick_jit = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
plain = REWARD_ESTIMATORS["maximum_likelihood"]


@pytest.mark.slow
def test_implicit_gradient_is_the_finite_difference(x64):
    """Inside the ball and on its sphere, with a null direction in x."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 4))
    x[:, 3] = x[:, 2]
    labels = np.where(rng.random(80) < 1 / (1 + np.exp(-x @ [1.0, -1.0, 0.5, 0.5])), 1.0, -1.0)
    towards = jnp.asarray(rng.normal(size=4))
    moved = rng.normal(size=(3, 80, 4))
    moved[..., 3] = moved[..., 2]

    @quick_jit
    def both(x, radius):
        loss = lambda x: jnp.dot(towards, fitted_theta(plain, x, labels, jnp.float64(0.0), radius))  # noqa: E731
        return jax.value_and_grad(loss)(x)

    free = np.linalg.norm(plain(jnp.asarray(x), labels, jnp.float64(0.0), radius=100.0).theta)
    for radius in (jnp.float64(100.0), jnp.float64(0.5 * free)):
        gradient = np.asarray(both(jnp.asarray(x), radius)[1])
        for direction in moved:
            ahead, behind = (float(both(jnp.asarray(x + s * 1e-4 * direction), radius)[0]) for s in (1, -1))
            np.testing.assert_allclose(np.sum(gradient * direction), (ahead - behind) / 2e-4, rtol=1e-4)


def test_cold_soft_policies_are_greedy(make_mdp):
    mdp = make_mdp()
    soft = jax.jit(soft_greedy_policy)(mdp, 0.01 * mdp.theta, 1e-4)
    np.testing.assert_allclose(soft, optimal_policy(mdp)[0], atol=1e-3)
    np.testing.assert_allclose(
        np.sum(soft_greedy_policy(mdp, jnp.zeros_like(mdp.theta), 0.1), axis=-1), 1, rtol=1e-5
    )


@pytest.fixture(scope="module")
def world(make_mdp):
    mdp = make_mdp(seed=2, n_states=12)
    return mdp, sample_preferences(jax.random.key(0), mdp, 300)


@pytest.fixture(scope="module")
def planted(world):
    """The data under `adaptive` and under `push_features` with the same key."""
    mdp, data = world
    searched = partial(adaptive, templates=3, steps=20)
    return [quick_jit(attack)(jax.random.key(1), data, 0.1, mdp) for attack in (searched, push_features)]


@pytest.mark.slow
def test_few_pairs_that_no_check_sees(planted, world):
    mdp, data = world
    other = planted[0]
    bad = np.asarray(changed_pairs(data, other))
    np.testing.assert_array_equal(bad, changed_pairs(data, planted[1]))
    assert bad.sum() == 30
    np.testing.assert_array_equal(np.asarray(other.labels)[bad], 1.0)
    observed = np.asarray(other.features, np.float64)[bad]
    np.testing.assert_array_equal(observed[:, 0], -observed[:, 1])
    assert np.linalg.norm(observed, axis=-1).max() <= 1 + 1e-5
    assert len(np.unique(observed.reshape(30, -1), axis=0)) <= 3
    rows = np.asarray(mdp.features, np.float64).reshape(-1, mdp.dim)
    null = np.linalg.svd(rows - rows[0])[2][-1]
    np.testing.assert_allclose(observed @ null, 0.0, atol=1e-5)


@pytest.mark.slow
def test_it_harms_more_than_pushing(planted, world):
    mdp, data = world

    @quick_jit
    def gap(corrupted):
        fit = plain(corrupted.differences(), corrupted.labels, jnp.float32(0.1), radius=data.theta_dim**0.5)
        return normalised_gap(mdp, optimal_policy(mdp, data.per_step(fit.theta))[0])

    clean, searched, pushed = (float(gap(d)) for d in (data, *planted))
    assert clean < 0.1
    assert searched >= pushed - 1e-4
    assert searched > 0.5
