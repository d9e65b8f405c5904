"""Exact planning against linear programming, brute force and loops in NumPy."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from robust_rlhf_jax.mdp import (
    MixturePolicy,
    expected_features,
    normalised_gap,
    occupancy,
    optimal_policy,
    optimal_state_values,
    policy_value,
    uniform_policy,
)


def as_numpy(mdp):
    """(P [H, S, A, S], r [H, S, A], ρ [S]) in float64."""
    phi = np.asarray(mdp.features, np.float64)
    table = phi if mdp.reward_features is None else np.asarray(mdp.reward_features, np.float64)
    transitions = np.einsum("sad,hdt->hsat", phi, np.asarray(mdp.transition_measures, np.float64))
    rewards = np.einsum("sap,hp->hsa", table, np.asarray(mdp.theta, np.float64))
    return transitions, rewards, np.asarray(mdp.initial_distribution, np.float64)


def flow_constraints(transitions, rho):
    """A_eq, b_eq of Σ_a q_1(s,a) = ρ(s), Σ_a q_{h+1}(t,a) = Σ_{s,a} q_h(s,a)P_h(t|s,a)."""
    horizon, n_states, n_actions, _ = transitions.shape
    matrix = np.zeros((horizon, n_states, horizon, n_states, n_actions))
    for h, s in itertools.product(range(horizon), range(n_states)):
        matrix[h, s, h, s, :] = 1.0
        if h > 0:
            matrix[h, s, h - 1] -= transitions[h - 1, :, :, s]
    target = np.zeros((horizon, n_states))
    target[0] = rho
    return matrix.reshape(horizon * n_states, -1), target.ravel()


def numpy_policy_value(mdp, policy):
    transitions, rewards, rho = as_numpy(mdp)
    value = np.zeros(len(rho))
    for h in reversed(range(len(rewards))):
        value = np.array(
            [
                sum(
                    float(policy[h, s, a]) * (rewards[h, s, a] + transitions[h, s, a] @ value)
                    for a in range(rewards.shape[2])
                )
                for s in range(len(rho))
            ]
        )
    return rho @ value


@pytest.mark.parametrize("seed", range(3))
def test_optimal_value_against_linear_programming(seed, x64, make_mdp):
    mdp = make_mdp(seed)
    transitions, rewards, rho = as_numpy(mdp)
    matrix, target = flow_constraints(transitions, rho)
    program = scipy.optimize.linprog(
        -rewards.ravel(), A_eq=scipy.sparse.csr_array(matrix), b_eq=target, method="highs"
    )
    assert program.status == 0
    policy, value = optimal_policy(mdp)
    np.testing.assert_allclose(value, -program.fun, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(policy_value(mdp, policy), value, rtol=1e-12)
    np.testing.assert_allclose(occupancy(mdp, policy).ravel(), program.x, atol=1e-8)


@pytest.mark.slow
def test_optimal_policy_beats_every_deterministic_one(x64, make_mdp):
    mdp = make_mdp(5, n_states=2, n_actions=2, dim=2)
    choices = np.array(list(itertools.product(range(2), repeat=6))).reshape(-1, 3, 2)
    values = np.array([numpy_policy_value(mdp, np.eye(2)[choice]) for choice in choices])
    policy, value = optimal_policy(mdp)
    np.testing.assert_allclose(value, values.max(), rtol=1e-12)
    np.testing.assert_array_equal(np.argmax(policy, axis=-1), choices[values.argmax()])
    np.testing.assert_allclose(
        jax.vmap(lambda p: policy_value(mdp, p))(jnp.eye(2)[choices]), values, rtol=1e-11, atol=1e-12
    )
    worst = jnp.eye(2)[choices[values.argmin()]]
    np.testing.assert_allclose(normalised_gap(mdp, worst), 1.0, rtol=1e-12)


@pytest.mark.parametrize(("wide", "tolerance"), [(False, 2e-5), (True, 1e-12)])
def test_policy_value_against_a_loop(wide, tolerance, make_mdp, random_policy):
    with jax.enable_x64(wide):
        mdp = make_mdp(1)
        policy = random_policy(mdp)
        value = policy_value(mdp, policy)
        assert value.dtype == (jnp.float64 if wide else jnp.float32)
        np.testing.assert_allclose(
            value, numpy_policy_value(mdp, np.asarray(policy)), rtol=tolerance, atol=tolerance
        )


def test_another_theta_replaces_the_true_one(small_mdp64, random_policy):
    policy = random_policy(small_mdp64)
    theta = jnp.asarray(np.random.default_rng(1).normal(size=small_mdp64.theta.shape))
    other = dataclasses.replace(small_mdp64, theta=theta)
    np.testing.assert_allclose(
        policy_value(small_mdp64, policy, theta), numpy_policy_value(other, policy), rtol=1e-12
    )
    for ours, theirs in zip(optimal_policy(small_mdp64, theta), optimal_policy(other), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(optimal_state_values(small_mdp64, theta), optimal_state_values(other))


def test_reward_features_of_another_dimension(small_mdp64, random_policy):
    rng = np.random.default_rng(2)
    mdp = dataclasses.replace(
        small_mdp64,
        reward_features=jnp.asarray(rng.normal(size=(6, 3, 2))),
        theta=jnp.asarray(rng.normal(size=(3, 2))),
    )
    policy = random_policy(mdp)
    expected = numpy_policy_value(mdp, policy)
    np.testing.assert_allclose(policy_value(mdp, policy), expected, rtol=1e-12)
    features = expected_features(mdp, policy)
    assert features.shape == (3, 2)
    np.testing.assert_allclose(np.sum(features * mdp.theta), expected, rtol=1e-12)


def test_occupancy_satisfies_the_flow_constraints(small_mdp64, random_policy):
    policy = random_policy(small_mdp64)
    transitions, rewards, rho = as_numpy(small_mdp64)
    matrix, target = flow_constraints(transitions, rho)
    q = np.asarray(occupancy(small_mdp64, policy))
    assert q.min() >= 0
    np.testing.assert_allclose(matrix @ q.ravel(), target, atol=1e-14)
    np.testing.assert_allclose(q / q.sum(axis=-1, keepdims=True), policy, rtol=1e-12)
    np.testing.assert_allclose(np.sum(q * rewards), policy_value(small_mdp64, policy), rtol=1e-12)


def test_expected_features_are_the_gradient_of_the_value(small_mdp64, random_policy):
    policy = random_policy(small_mdp64)
    gradient = jax.grad(lambda theta: policy_value(small_mdp64, policy, theta))(small_mdp64.theta)
    np.testing.assert_allclose(expected_features(small_mdp64, policy), gradient, rtol=1e-12)


def test_optimal_state_values_satisfy_bellmans_equation(small_mdp64):
    transitions, rewards, rho = as_numpy(small_mdp64)
    values = np.asarray(optimal_state_values(small_mdp64))
    assert values.shape == (4, 6)
    np.testing.assert_array_equal(values[-1], 0.0)
    for h in range(3):
        np.testing.assert_allclose(
            values[h], (rewards[h] + transitions[h] @ values[h + 1]).max(axis=-1), rtol=1e-12
        )
    np.testing.assert_allclose(rho @ values[0], optimal_policy(small_mdp64)[1], rtol=1e-12)


def test_ties_go_to_the_first_action(small_mdp):
    policy, value = optimal_policy(small_mdp, jnp.zeros_like(small_mdp.theta))
    np.testing.assert_array_equal(np.argmax(policy, axis=-1), 0)
    np.testing.assert_array_equal(np.sum(policy, axis=-1), 1.0)
    assert value == 0.0


@given(st.integers(0, 1000), st.floats(0.0, 1.0), st.floats(0.01, 10.0))
def test_optimal_value_is_convex_lipschitz_and_homogeneous_in_theta(make_mdp, seed, share, scale):
    with jax.enable_x64(True):
        mdp = make_mdp(7)
        rng = np.random.default_rng(seed)
        first, second = rng.normal(size=(2, *mdp.theta.shape))
        value = lambda theta: float(optimal_policy(mdp, jnp.asarray(theta))[1])  # noqa: E731
        at_first, at_second = value(first), value(second)
        assert (
            value(share * first + (1 - share) * second) <= share * at_first + (1 - share) * at_second + 1e-12
        )
        # ‖E_π φ_h‖ ≤ 1 at each of H steps, so the gradient in the H·d numbers has norm at most √H.
        assert abs(at_first - at_second) <= np.sqrt(mdp.horizon) * np.linalg.norm(first - second) + 1e-12
        np.testing.assert_allclose(value(scale * first), scale * at_first, rtol=1e-10, atol=1e-12)


def test_optimal_value_lies_above_its_tangents(small_mdp64):
    """E_{π★(θ)}[φ] is a subgradient of V★ at θ."""
    rng = np.random.default_rng(3)
    policy, value = optimal_policy(small_mdp64)
    slope = np.asarray(expected_features(small_mdp64, policy))
    for step in rng.normal(size=(20, *small_mdp64.theta.shape)):
        there = optimal_policy(small_mdp64, small_mdp64.theta + step)[1]
        assert there >= value + np.sum(slope * step) - 1e-12


@pytest.mark.slow
def test_mixture_is_the_weighted_mean(small_mdp64, random_policy):
    policies = jnp.stack([random_policy(small_mdp64, seed) for seed in range(3)])
    weights = jnp.array([0.2, 0.5, 0.3])
    mixture = MixturePolicy(policies, weights)
    values = np.array([numpy_policy_value(small_mdp64, p) for p in policies])
    np.testing.assert_allclose(policy_value(small_mdp64, mixture), weights @ values, rtol=1e-12)
    q = np.tensordot(weights, np.stack([occupancy(small_mdp64, p) for p in policies]), axes=1)
    np.testing.assert_allclose(occupancy(small_mdp64, mixture), q, rtol=1e-12)
    np.testing.assert_allclose(
        np.sum(expected_features(small_mdp64, mixture) * small_mdp64.theta), weights @ values, rtol=1e-12
    )
    gaps = np.array([normalised_gap(small_mdp64, p) for p in policies])
    np.testing.assert_allclose(normalised_gap(small_mdp64, mixture), weights @ gaps, rtol=1e-11)
    averaged = jnp.tensordot(weights, policies, axes=1)
    assert abs(policy_value(small_mdp64, averaged) - weights @ values) > 1e-6, (
        "averaging actions is another policy"
    )


@pytest.mark.parametrize(("wide", "tolerance"), [(False, 2e-6), (True, 1e-14)])
def test_gap_is_zero_at_the_best_and_one_at_the_worst(wide, tolerance, make_mdp, random_policy):
    with jax.enable_x64(wide):
        mdp = make_mdp(2)
        best, high = optimal_policy(mdp)
        worst, low = optimal_policy(mdp, -mdp.theta)
        np.testing.assert_allclose(normalised_gap(mdp, best), 0.0, atol=tolerance)
        np.testing.assert_allclose(normalised_gap(mdp, worst), 1.0, atol=tolerance)
        value = numpy_policy_value(mdp, random_policy(mdp))
        expected = (float(high) - value) / (float(high) + float(low))
        np.testing.assert_allclose(normalised_gap(mdp, random_policy(mdp)), expected, atol=100 * tolerance)
        assert 0 < expected < 1


@pytest.mark.parametrize("rotated", [False, True])
def test_theta_along_the_total_measure_adds_a_constant(rotated, small_mdp64, rotate_features, random_policy):
    """φ(s,a)·μ_h(S) = 1, so θ_h + c_h·μ_h(S) adds Σ_h c_h to every policy: no preference can show it."""
    mdp = rotate_features(small_mdp64) if rotated else small_mdp64
    constants = jnp.array([0.7, -1.3, 2.1])
    shifted = mdp.theta + constants[:, None] * jnp.sum(mdp.transition_measures, axis=-1)
    for policy in (random_policy(mdp, 1), uniform_policy(mdp), optimal_policy(mdp)[0]):
        np.testing.assert_allclose(
            policy_value(mdp, policy, shifted) - policy_value(mdp, policy), 1.5, rtol=1e-11
        )
    np.testing.assert_array_equal(optimal_policy(mdp, shifted)[0], optimal_policy(mdp)[0])


def test_rotating_the_features_changes_nothing(small_mdp64, rotate_features, random_policy):
    rotated, policy = rotate_features(small_mdp64), random_policy(small_mdp64)
    np.testing.assert_allclose(policy_value(rotated, policy), policy_value(small_mdp64, policy), rtol=1e-12)
    np.testing.assert_allclose(occupancy(rotated, policy), occupancy(small_mdp64, policy), atol=1e-14)
    np.testing.assert_array_equal(optimal_policy(rotated)[0], optimal_policy(small_mdp64)[0])


def test_planning_batches_and_compiles_once(small_mdp, random_policy, count_compilations):
    thetas = jnp.stack([small_mdp.theta, -small_mdp.theta, 2 * small_mdp.theta])
    policies, values = jax.vmap(lambda theta: optimal_policy(small_mdp, theta))(thetas)
    for i in range(3):
        policy, value = optimal_policy(small_mdp, thetas[i])
        np.testing.assert_array_equal(policies[i], policy)
        np.testing.assert_allclose(values[i], value, rtol=1e-6)
    policy, theta = random_policy(small_mdp), 3 * small_mdp.theta
    policy_value(small_mdp, policies[0], thetas[0])
    with count_compilations() as count:
        optimal_policy(small_mdp, theta)
        policy_value(small_mdp, policy, theta)
    assert count.compiled == []


def test_a_reward_under_which_all_policies_are_alike_has_no_gap(small_mdp):
    nothing = dataclasses.replace(small_mdp, theta=jnp.zeros_like(small_mdp.theta))
    with pytest.raises(ValueError, match="same value"):
        normalised_gap(nothing, uniform_policy(nothing))


def test_the_gap_of_what_is_no_policy_of_the_mdp_is_refused(small_mdp):
    """Chances that sum to more than 1 would earn more than the best policy: a gap below 0."""
    shape = uniform_policy(small_mdp).shape
    with pytest.raises(ValueError, match=r"policy has shape .*; this MDP needs \[H, S, A\] = "):
        normalised_gap(small_mdp, jnp.ones(shape[1:]))
    for wrong in (jnp.ones(shape), jnp.full(shape, jnp.nan)):
        with pytest.raises(ValueError, match="must be ≥ 0 and sum to 1"):
            normalised_gap(small_mdp, wrong)


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_the_gap_of_a_policy_in_half_precision_is_told(small_mdp, dtype):
    policy = jax.nn.softmax(jax.random.normal(jax.random.key(0), uniform_policy(small_mdp).shape))
    assert abs(normalised_gap(small_mdp, policy.astype(dtype)) - normalised_gap(small_mdp, policy)) < 0.01
