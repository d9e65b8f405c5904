"""The planning game's gradients against automatic differentiation, sample means and a linear program."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
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
    following_values,
    policy_tables,
    softmax_policy,
)
from robust_rlhf_jax.mdp import expected_features, occupancy, optimal_policy, policy_value


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


@pytest.mark.slow
def test_gradients_are_those_of_the_explicit_lagrangian(game):
    mdp, moments = game
    beta, logits, w = random_point(mdp)
    tables = policy_tables(mdp.features, logits, w)

    def explicit(b, v):
        return explicit_lagrangian(mdp, moments, b, tables.policy, v)

    up, down = jax.grad(explicit, argnums=(0, 1))(beta, w)
    np.testing.assert_allclose(ascent_gradient(moments, mdp.theta, w, tables.value), up, atol=1e-6)
    np.testing.assert_allclose(descent_gradient(moments, beta, tables.feature), down, atol=1e-6)


def linear_program(mdp):
    """Occupancies q★ [H, S, A] of an optimal policy and values v★ [H, S], by HiGHS."""
    horizon, n_states, n_actions = mdp.horizon, mdp.n_states, mdp.n_actions
    flow, entering = flow_constraints(mdp)
    found = linprog(-np.asarray(mdp.rewards()).reshape(-1), A_eq=flow, b_eq=entering)
    values = -found.eqlin.marginals.reshape(horizon, n_states)
    return found.x.reshape(horizon, n_states, n_actions), values, -found.fun


@pytest.mark.slow
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


@pytest.mark.slow
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


def test_the_softmax_policy_is_that_of_scipy(x64):
    rng = np.random.default_rng(5)
    table, logits = rng.normal(size=(5, 3, 2)), 2.0 * rng.normal(size=(4, 2))
    expected = scipy.special.softmax(np.einsum("sad,hd->hsa", table, logits), axis=2)
    np.testing.assert_allclose(softmax_policy(jnp.asarray(table), jnp.asarray(logits)), expected, rtol=1e-12)


def test_tables_say_what_a_policy_does_and_is_worth(x64):
    rng = np.random.default_rng(6)
    table, logits, w = rng.normal(size=(5, 3, 2)), rng.normal(size=(4, 2)), rng.normal(size=(4, 2))
    tables = policy_tables(*map(jnp.asarray, (table, logits, w)))
    policy = np.asarray(softmax_policy(jnp.asarray(table), jnp.asarray(logits)))
    np.testing.assert_array_equal(tables.policy, policy)
    feature = (policy[..., None] * table).sum(axis=2)
    np.testing.assert_allclose(tables.feature, feature, rtol=1e-12)
    np.testing.assert_allclose(tables.value, (feature * w[:, None]).sum(axis=2), rtol=1e-12, atol=1e-15)


def test_values_that_follow_are_those_of_the_next_step_and_zero_at_the_end():
    value = np.arange(1.0, 7.0).reshape(3, 2)
    np.testing.assert_array_equal(following_values(jnp.asarray(value)), [[3.0, 4.0], [5.0, 6.0], [0.0, 0.0]])


def test_flow_and_arrival_have_weights_of_their_own(x64):
    rng = np.random.default_rng(4)
    phi, previous, states = rng.normal(size=(6, 2)), rng.normal(size=(6, 2)), np.array([0, 2, 2, 1, 0, 2])
    flow, arrival = rng.uniform(size=(2, 6))
    found = jax.jit(lambda *args: descent_moments(*args, 4))(phi, previous, states, flow, arrival)
    landed = np.eye(4)[states] * (arrival / arrival.sum())[:, None]
    np.testing.assert_allclose(found[0], (phi.T * flow / flow.sum()) @ phi, rtol=1e-12)
    np.testing.assert_allclose(found[1], landed.T @ previous, rtol=1e-12)
    np.testing.assert_allclose(found[2], landed.sum(axis=0), rtol=1e-12)


@pytest.mark.parametrize("short", range(2, 5))
def test_moments_of_other_numbers_of_rows_are_refused(short):
    rows, states, ones = jnp.ones((6, 2)), jnp.zeros(6, int), jnp.ones(6)
    args = [rows, rows, states, ones, ones]
    args[short] = args[short][:1]
    with pytest.raises(AssertionError):
        descent_moments(*args, 4)
    if short < 4:
        with pytest.raises(AssertionError):
            ascent_moments(*args[:4], 4)
