"""Second moments of trajectory features against enumeration and against samples."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax import sample_preferences
from robust_rlhf_jax.lab.diagnostics.feature_moments import difference_second_moment, feature_second_moment
from robust_rlhf_jax.mdp import MixturePolicy, expected_features


def enumerated_moment(mdp, policy):
    """E[φ(τ)φ(τ)ᵀ] over every trajectory of a tiny world."""
    phi, policy = np.asarray(mdp.features), np.asarray(policy)
    moves = np.einsum("sad,hdt->hsat", phi, mdp.transition_measures)
    k = mdp.horizon * mdp.dim
    total = np.zeros((k, k))
    cells = list(itertools.product(range(mdp.n_states), range(mdp.n_actions)))
    for path in itertools.product(cells, repeat=mdp.horizon):
        chance = np.asarray(mdp.initial_distribution)[path[0][0]]
        for h, (s, a) in enumerate(path):
            chance *= policy[h, s, a] * (moves[h, s, a, path[h + 1][0]] if h + 1 < mdp.horizon else 1.0)
        flat = np.concatenate([phi[s, a] for s, a in path])
        total += chance * np.outer(flat, flat)
    return total


def test_moment_is_the_sum_over_all_trajectories(x64, make_mdp, random_policy):
    mdp = make_mdp(1, n_states=3, n_actions=2, dim=3, horizon=3)
    policy = random_policy(mdp)
    found = feature_second_moment(mdp, policy).reshape(9, 9)
    np.testing.assert_allclose(found, enumerated_moment(mdp, policy), atol=1e-12)


@pytest.mark.slow
def test_moment_of_a_mixture_is_the_mixture_of_moments(small_mdp64, random_policy):
    policies = jnp.stack([random_policy(small_mdp64, seed) for seed in range(2)])
    weights = jnp.array([0.3, 0.7])
    found = feature_second_moment(small_mdp64, MixturePolicy(policies, weights))
    parts = [feature_second_moment(small_mdp64, p) for p in policies]
    np.testing.assert_allclose(found, 0.3 * parts[0] + 0.7 * parts[1], atol=1e-12)


@pytest.mark.slow
def test_difference_moment_is_what_sampled_pairs_show(small_mdp, random_policy):
    """Within five standard errors, entry by entry."""
    behaviour = random_policy(small_mdp, 1), random_policy(small_mdp, 2)
    n = 20_000
    x = np.asarray(sample_preferences(jax.random.key(0), small_mdp, n, behaviour=behaviour).differences())
    products = x[:, :, None] * x[:, None, :]
    error = products.std(axis=0) / np.sqrt(n)
    exact = difference_second_moment(small_mdp, *behaviour).reshape(products.shape[1:])
    assert np.all(np.abs(products.mean(axis=0) - exact) <= 5 * error + 1e-6)


def test_difference_moment_has_the_null_directions_of_the_errata(small_mdp64, random_policy):
    behaviour = random_policy(small_mdp64, 1), random_policy(small_mdp64, 2)
    moment = difference_second_moment(small_mdp64, *behaviour)
    shift = jnp.sum(small_mdp64.transition_measures, axis=-1)  # μ_h(𝒮), which every φ meets in 1
    np.testing.assert_allclose(jnp.einsum("hpkq,kq->hpk", moment, shift), 0.0, atol=1e-12)


def test_equal_policies_leave_twice_the_covariance(small_mdp64, random_policy):
    policy = random_policy(small_mdp64)
    mean = expected_features(small_mdp64, policy)
    covariance = feature_second_moment(small_mdp64, policy) - jnp.einsum("hp,kq->hpkq", mean, mean)
    found = difference_second_moment(small_mdp64, policy, policy)
    np.testing.assert_allclose(found, 2 * covariance, atol=1e-12)
