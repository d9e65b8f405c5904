"""LSVI and R-LSVI against NumPy, the exact values, and central differences."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax import LSVI, RLSVI, expected_features, optimal_policy, sample_preferences
from robust_rlhf_jax.attacks import spoil_transitions
from robust_rlhf_jax.mdp import chain_mdp, normalised_gap
from robust_rlhf_jax.oracles.transitions import fresh_folds, initial_state_weights, transitions_per_step


def prepare(oracle, data, epsilon=0.0):
    return jax.jit(lambda d, e: oracle.prepare(d, e, key=jax.random.key(0)))(data, epsilon)


def numpy_value_iteration(data, theta, rho, ridge=0.0):
    """Least squares of V_{h+1}(s') on φ, clipped to what the rewards allow, greedy backwards."""
    table = np.asarray(data.state_features, np.float64)
    n_states, n_actions, dim = table.shape
    horizon = data.horizon
    phi, states = np.asarray(data.features, np.float64), np.asarray(data.states)
    value, policy, low, high = np.zeros(n_states), np.zeros((horizon, n_states, n_actions)), 0.0, 0.0
    for h in reversed(range(horizon)):
        rows, following = phi[:, :, h].reshape(-1, dim), states[:, :, h + 1].reshape(-1)
        targets = value[following]
        if ridge:
            gram = rows.T @ rows + ridge * len(rows) * np.eye(dim)
            w = np.linalg.solve(gram, rows.T @ targets)
        else:
            w = np.linalg.lstsq(rows, targets, rcond=None)[0]
        reward = table @ theta[h]
        low, high = low + reward.min(), high + reward.max()
        q = np.clip(reward + table @ w, low, high)
        policy[h] = np.eye(n_actions)[q.argmax(axis=1)]
        value = q.max(axis=1)
    return rho @ value, policy


@pytest.mark.parametrize(("wide", "tolerance"), [(False, 1e-4), (True, 1e-8)])
def test_against_an_independent_value_iteration(wide, tolerance, make_mdp):
    with jax.enable_x64(wide):
        mdp = make_mdp()
        data = sample_preferences(jax.random.key(0), mdp, 400)
        rho = mdp.initial_distribution
        rlsvi, lsvi = RLSVI(initial=rho), LSVI(ridge=1e-2)
        prepared, model = prepare(rlsvi, data), prepare(lsvi, data)
        thetas = np.random.default_rng(3).normal(size=(4, *mdp.theta.shape))
        many = eqx.filter_jit(jax.vmap(rlsvi.solve, in_axes=(None, 0)))(prepared, jnp.asarray(thetas))
        plain = eqx.filter_jit(jax.vmap(lsvi.solve, in_axes=(None, 0)))(model, jnp.asarray(thetas))
    first = np.bincount(np.asarray(data.states)[:, :, 0].ravel(), minlength=6) / 800
    for i, theta in enumerate(thetas):
        value, policy = numpy_value_iteration(data, theta, np.asarray(rho, np.float64))
        np.testing.assert_allclose(many.value[i], value, rtol=tolerance, atol=tolerance)
        np.testing.assert_array_equal(many.policy[i], policy)
        value, policy = numpy_value_iteration(data, theta, first, ridge=1e-2)
        np.testing.assert_allclose(plain.value[i], value, rtol=tolerance, atol=tolerance)
        np.testing.assert_array_equal(plain.policy[i], policy)


@pytest.mark.parametrize("oracle", ["lsvi", "rlsvi"])
def test_plentiful_clean_data_give_the_exact_value(oracle, small_mdp):
    """Mean over eight data sets, within five standard errors of the truth, and those are small."""
    mdp = small_mdp
    planner = LSVI() if oracle == "lsvi" else RLSVI()
    epsilon = 0.0 if oracle == "lsvi" else 0.02

    @jax.jit
    def estimate(key):
        data = sample_preferences(key, mdp, 4000)
        return planner.solve(planner.prepare(data, epsilon, key=key), mdp.theta)

    results = jax.lax.map(estimate, jax.random.split(jax.random.key(5), 8))
    exact = float(optimal_policy(mdp)[1])
    error = np.std(results.value, ddof=1) / np.sqrt(8)
    assert error < 0.02
    assert abs(np.mean(results.value) - exact) < 5 * error
    gaps = [normalised_gap(mdp, policy) for policy in results.policy]
    assert max(gaps) < 0.01


def value_and_slope(oracle):
    """(prepared, θ) → (V̂, ∂V̂/∂θ)."""
    return jax.jit(
        lambda prepared, theta: jax.value_and_grad(lambda t: oracle.solve(prepared, t).value)(theta)
    )


@pytest.mark.parametrize("oracle", [LSVI(), RLSVI()], ids=["lsvi", "rlsvi"])
def test_derivative_without_corruption_is_exact(oracle, small_mdp64):
    mdp = small_mdp64
    prepared = prepare(oracle, sample_preferences(jax.random.key(1), mdp, 400))
    slope_at = value_and_slope(oracle)
    rng = np.random.default_rng(2)
    value, slope = slope_at(prepared, mdp.theta)
    for direction in rng.normal(size=(6, *mdp.theta.shape)):
        ends = [slope_at(prepared, mdp.theta + s * 1e-5 * direction)[0] for s in (1, -1)]
        np.testing.assert_allclose(
            (ends[0] - ends[1]) / 2e-5, np.sum(slope * direction), rtol=1e-6, atol=1e-7
        )
    # V̂ is homogeneous of degree one in θ (Euler).
    np.testing.assert_allclose(np.sum(slope * mdp.theta), value, rtol=1e-9)


def test_derivative_with_clipping_is_close(small_mdp64):
    """At ε = .1 the clip factors are constants to the derivative: five per cent of its length."""
    mdp = small_mdp64
    oracle = RLSVI()
    prepared = prepare(oracle, sample_preferences(jax.random.key(1), mdp, 2000), 0.1)
    slope_at = value_and_slope(oracle)
    _, slope = slope_at(prepared, mdp.theta)
    basis = np.eye(mdp.theta.size).reshape(-1, *mdp.theta.shape)
    differences = np.array(
        [
            (slope_at(prepared, mdp.theta + 1e-5 * e)[0] - slope_at(prepared, mdp.theta - 1e-5 * e)[0]) / 2e-5
            for e in basis
        ]
    ).reshape(mdp.theta.shape)
    assert np.linalg.norm(differences - slope) < 0.05 * np.linalg.norm(slope)


def test_derivative_estimates_expected_features(small_mdp):
    """Danskin: over eight data sets the mean of ∂V̂ − E_π̂[φ] is zero within five standard errors."""
    mdp, oracle = small_mdp, RLSVI()

    @jax.jit
    def difference(key):
        data = sample_preferences(key, mdp, 4000)
        prepared = oracle.prepare(data, 0.0, key=key)
        slope, result = jax.grad(lambda t: (lambda r: (r.value, r))(oracle.solve(prepared, t)), has_aux=True)(
            mdp.theta
        )
        return slope - expected_features(mdp, result.policy)

    found = np.asarray(jax.lax.map(difference, jax.random.split(jax.random.key(6), 8)), np.float64)
    errors = found.std(axis=0, ddof=1) / np.sqrt(8)
    assert errors.max() < 0.02
    assert (np.abs(found.mean(axis=0)) < 5 * errors).all()


@pytest.fixture(scope="module")
def data(make_mdp):
    return sample_preferences(jax.random.key(0), make_mdp(), 400)


def test_the_bonus_is_pessimism(data, small_mdp):
    """Larger scales, larger ε and rarer features mean lower values; scale 0 means none."""
    theta = small_mdp.theta

    @jax.jit
    def value(scale, epsilon):
        oracle = RLSVI(bonus="relative", bonus_scale=scale)
        return oracle.solve(oracle.prepare(data, epsilon, key=jax.random.key(0)), theta).value

    plain = RLSVI()
    none = eqx.filter_jit(plain.solve)(prepare(plain, data, 0.0), theta).value
    np.testing.assert_allclose(value(0.0, 0.0), none, rtol=1e-5)
    values = [float(value(s, 0.05)) for s in (0.0, 0.003, 0.01, 0.03, 1e6)]
    assert (np.diff(values) < 0).all()
    lowest = np.asarray(small_mdp.rewards()).min(axis=(1, 2)).sum()
    np.testing.assert_allclose(values[-1], lowest, rtol=1e-5, err_msg="the clip bounds pessimism")


def test_the_bonus_is_the_formula(data):
    """Γ = scale·c·‖φ‖_{Λ⁻¹}, Λ = .6(E[φφᵀ] + (ε+λ)I), c = H(√ε + d/√n + 2√(d(ε+λ)))."""
    oracle, epsilon = RLSVI(bonus="relative", bonus_scale=0.5, ridge=1e-3), 0.04
    prepared = prepare(oracle, data, epsilon)
    table = np.asarray(data.state_features, np.float64)
    constant = 3 * (np.sqrt(epsilon) + 4 / np.sqrt(800) + 2 * np.sqrt(4 * (epsilon + 1e-3)))
    for h in range(3):
        moment = np.asarray(prepared.designs.second_moment[h], np.float64)
        inverse = np.linalg.inv(0.6 * (moment + (epsilon + 1e-3) * np.eye(4)))
        norms = np.sqrt(np.einsum("sad,de,sae->sa", table, inverse, table))
        np.testing.assert_allclose(prepared.bonus[h], 0.5 * constant * norms, rtol=1e-4)


def test_unknown_bonus_is_named():
    with pytest.raises(ValueError, match="bonus='much' is unknown"):
        RLSVI(bonus="much")


def test_transitions_are_those_of_the_data(data):
    phi, following = transitions_per_step(data)
    assert phi.shape == (3, 800, 4)
    for h in range(3):
        np.testing.assert_array_equal(phi[h].reshape(400, 2, 4), data.features[:, :, h])
        np.testing.assert_array_equal(following[h].reshape(400, 2), data.states[:, :, h + 1])
    weights = initial_state_weights(data)
    expected = np.bincount(np.asarray(data.states)[..., 0].ravel(), minlength=6) / 800
    np.testing.assert_allclose(weights, expected, rtol=1e-6)


def test_fresh_folds_are_disjoint(data):
    """Features are replaced by the pair's number: no pair serves two steps, and φ goes with its own s'."""
    marks = jnp.broadcast_to(jnp.arange(400.0)[:, None, None, None], data.features.shape)
    phi, following = jax.jit(fresh_folds)(jax.random.key(0), dataclasses.replace(data, features=marks))
    assert phi.shape == (3, 2 * (400 // 3), 4)
    pairs = np.asarray(phi[..., 0]).astype(int)
    used = [np.unique(row) for row in pairs]
    assert all(len(u) == 133 for u in used)
    assert len(np.unique(np.concatenate(used))) == 3 * 133
    for h in range(3):
        allowed = np.asarray(data.states)[pairs[h], :, h + 1]
        assert (allowed == np.asarray(following[h])[:, None]).any(axis=1).all()
        both = np.sort(np.asarray(data.states)[used[h], :, h + 1].ravel())
        np.testing.assert_array_equal(np.sort(following[h]), both)


def test_too_few_pairs_for_fresh_data(data):
    few = data.take(jnp.arange(2))
    with pytest.raises(ValueError, match="2 pairs cannot give 3 steps a fold"):
        RLSVI(fresh_data=True).prepare(few, 0.1, key=jax.random.key(0))


def test_corrupt_first_states_are_outvoted(small_mdp):
    """Rows that claim a far better first state move the plain mean by ε·jump; known ρ ignores them."""
    mdp = small_mdp
    data = sample_preferences(jax.random.key(4), mdp, 400)
    oracle = RLSVI(initial=mdp.initial_distribution)
    spoilt = dataclasses.replace(data, states=data.states.at[:40, :, 0].set(0))
    values = [eqx.filter_jit(oracle.solve)(prepare(oracle, d, 0.1), mdp.theta).value for d in (data, spoilt)]
    np.testing.assert_allclose(values[0], values[1], rtol=1e-6)


def test_spoilt_transitions_on_a_chain():
    """Where one wrong transition decides, the plain planner stays ashore and the robust one swims."""
    mdp = chain_mdp()
    spoil = jax.jit(lambda key: spoil_transitions(key, sample_preferences(key, mdp, 10_000), 0.1, mdp))
    robust, plain = RLSVI(), LSVI()
    gaps = {"robust": [], "plain": []}
    for seed in range(2):
        data = spoil(jax.random.key(seed))
        for name, oracle in (("robust", robust), ("plain", plain)):
            result = eqx.filter_jit(oracle.solve)(prepare(oracle, data, 0.1), mdp.theta)
            gaps[name].append(float(normalised_gap(mdp, result.policy)))
    assert max(gaps["robust"]) < 0.02
    assert min(gaps["plain"]) > 5 * max(gaps["robust"])
