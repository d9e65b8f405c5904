"""The planning game's gradients against automatic differentiation, sample means and a linear program."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bellman_flow import flow_constraints
from scipy.optimize import linprog

from robust_rlhf_jax.kernels.primal_dual import (
    GameMoments,
    ascent_gradient,
    ascent_moments,
    ascent_rows,
    descent_gradient,
    descent_moments,
    descent_rows,
    lagrangian,
    policy_tables,
)
from robust_rlhf_jax.worlds import expected_features, occupancy, optimal_policy, policy_value


@pytest.fixture
def game(small_mdp64, random_policy):
    """(mdp, exact moments under a random behaviour)."""
    mdp = small_mdp64
    q = occupancy(mdp, random_policy(mdp))
    second = jnp.einsum("hsa,sad,sae->hde", q, mdp.features, mdp.features)
    landing = jnp.einsum("hde,hes->hsd", second, mdp.transition_measures)
    arriving = jnp.concatenate([jnp.zeros_like(landing[:1]), landing[:-1]])
    return mdp, GameMoments(second, second, landing, second, arriving, mdp.initial_distribution)


def random_point(mdp, seed=0):
    """(β, logits, w)."""
    return jnp.asarray(np.random.default_rng(seed).normal(size=(3, mdp.horizon, mdp.dim)))


def explicit_lagrangian(mdp, moments, beta, policy, w):
    """Σ_h⟨Λ_hθ_h, β_h⟩ + Σ_h⟨w_h, Φᵀq_h − Λ_hβ_h⟩, written out over the state-action table."""
    total = 0.0
    for h in range(mdp.horizon):
        flow = moments.second[h] @ beta[h]
        if h == 0:
            entering = mdp.initial_distribution
        else:
            entering = mdp.transition_measures[h - 1].T @ (moments.second[h - 1] @ beta[h - 1])
        q = policy[h] * entering[:, None]
        total += mdp.theta[h] @ flow + w[h] @ (jnp.einsum("sa,sad->d", q, mdp.features) - flow)
    return total


def test_gradients_are_those_of_the_explicit_lagrangian(game):
    mdp, moments = game
    beta, logits, w = random_point(mdp)
    tables = policy_tables(mdp.features, logits, w)

    def explicit(b, v):
        return explicit_lagrangian(mdp, moments, b, tables.policy, v)

    up, down = jax.grad(explicit, argnums=(0, 1))(beta, w)
    np.testing.assert_allclose(ascent_gradient(moments, mdp.theta, w, tables.value), up, atol=1e-6)
    np.testing.assert_allclose(descent_gradient(moments, beta, tables.feature), down, atol=1e-6)
    np.testing.assert_allclose(
        lagrangian(moments, mdp.theta, beta, logits, w, mdp.features), explicit(beta, w), rtol=1e-10
    )


def linear_program(mdp):
    """Occupancies q★ [H, S, A] of an optimal policy and values v★ [H, S], by HiGHS."""
    horizon, n_states, n_actions = mdp.horizon, mdp.n_states, mdp.n_actions
    flow, entering = flow_constraints(mdp)
    found = linprog(-np.asarray(mdp.rewards()).reshape(-1), A_eq=flow, b_eq=entering)
    values = -found.eqlin.marginals.reshape(horizon, n_states)
    return found.x.reshape(horizon, n_states, n_actions), values, -found.fun


def test_gradients_vanish_at_the_linear_programs_optimum(game):
    """β★ = Λ⁻¹Φᵀq★ and w★_h = θ_h + μ_hv★_{h+1} (HiGHS): nobody can gain, and L is V★."""
    mdp, moments = game
    q, values, best = linear_program(mdp)
    features = np.einsum("hsa,sad->hd", q, mdp.features)
    beta = np.linalg.solve(moments.second, features[..., None])[..., 0]
    following = np.concatenate([values[1:], np.zeros((1, mdp.n_states))])
    w = mdp.theta + jnp.einsum("hds,hs->hd", mdp.transition_measures, following)
    policy = optimal_policy(mdp)[0]
    feature = jnp.einsum("hsa,sad->hsd", policy, mdp.features)
    value = jnp.einsum("hsd,hd->hs", feature, w)
    np.testing.assert_allclose(value, values, atol=1e-8)
    np.testing.assert_allclose(ascent_gradient(moments, mdp.theta, w, value), 0.0, atol=1e-8)
    np.testing.assert_allclose(descent_gradient(moments, beta, feature), 0.0, atol=1e-8)
    np.testing.assert_allclose(
        explicit_lagrangian(mdp, moments, jnp.asarray(beta), policy, w), best, rtol=1e-8
    )
    np.testing.assert_allclose(policy_value(mdp, policy), best, rtol=1e-8)
    np.testing.assert_allclose(features, expected_features(mdp, policy), atol=1e-8)


def test_means_of_rows_are_the_gradients_of_their_moments(x64):
    """Weighted, at a step in the middle."""
    rng = np.random.default_rng(3)
    n, n_states, dim, p = 50, 7, 4, 2
    phi, previous = (jnp.asarray(rng.normal(size=(n, dim))) for _ in range(2))
    reward_phi, theta = jnp.asarray(rng.normal(size=(n, p))), jnp.asarray(rng.normal(size=p))
    states, following = (jnp.asarray(rng.integers(n_states, size=n)) for _ in range(2))
    weights = jnp.asarray(rng.uniform(size=n))
    value, feature = jnp.asarray(rng.normal(size=n_states)), jnp.asarray(rng.normal(size=(n_states, dim)))
    w, beta, beta_before = jnp.asarray(rng.normal(size=(3, dim)))

    reward, second, landing = ascent_moments(phi, reward_phi, following, weights, n_states)
    rows = ascent_rows(phi, reward_phi @ theta, value[following], w)
    np.testing.assert_allclose(
        np.average(rows, axis=0, weights=weights), reward @ theta + value @ landing - second @ w, rtol=1e-10
    )
    flow, arriving, occupied = descent_moments(phi, previous, states, weights, weights, n_states)
    rows = descent_rows(phi, beta, feature[states], previous @ beta_before)
    np.testing.assert_allclose(
        np.average(rows, axis=0, weights=weights),
        (arriving @ beta_before) @ feature - flow @ beta,
        rtol=1e-10,
    )
    expected = np.bincount(states, weights, n_states) / weights.sum()
    np.testing.assert_allclose(occupied, expected, rtol=1e-10)
