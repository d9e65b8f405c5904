"""LSVI and R-LSVI against NumPy, the exact values, and central differences."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax import sample_preferences
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.lab.attacks import corrupt_transitions
from robust_rlhf_jax.lab.worlds import chain_mdp
from robust_rlhf_jax.mdp import expected_features, normalised_gap, optimal_policy
from robust_rlhf_jax.oracles import LSVI, RLSVI, ExactOracle
from robust_rlhf_jax.oracles.backward_induction import backward_induction
from robust_rlhf_jax.oracles.transitions import fresh_folds, initial_state_weights, transitions_per_step


# Module-level programs: equal oracles at equal shapes share them.
@eqx.filter_jit
def prepare(oracle, data, epsilon):
    return oracle.prepare(data, epsilon, key=jax.random.key(0))


@eqx.filter_jit
def solve(oracle, prepared, theta):
    return oracle.solve(prepared, theta)


@eqx.filter_jit
def slope_at(oracle, prepared, theta):
    """(V̂, ∂V̂/∂θ)."""
    return jax.value_and_grad(lambda t: oracle.solve(prepared, t).value)(theta)


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


@pytest.mark.slow
@pytest.mark.parametrize(("wide", "tolerance"), [(False, 1e-4), (True, 1e-8)])
def test_against_an_independent_value_iteration(wide, tolerance, make_mdp):
    with jax.enable_x64(wide):
        mdp = make_mdp()
        data = sample_preferences(jax.random.key(0), mdp, 400)
        rho = mdp.initial_distribution
        rlsvi, lsvi, zero = RLSVI(initial=rho), LSVI(ridge=1e-2), jnp.zeros(())
        prepared, model = prepare(rlsvi, data, zero), prepare(lsvi, data, zero)
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


@pytest.mark.parametrize("shared", [False, True])
def test_backward_induction_with_a_model_for_each_step_or_one_for_all(shared):
    """Q = clip(r + φᵀMV − Γ) in NumPy, the clip within reach; d = 4 and S = 6 are more than the H = 3 steps."""
    rng = np.random.default_rng(0)
    own = 1 if shared else 3
    measures = rng.dirichlet(np.ones(6), (own, 4)).astype(np.float32)
    bonus = rng.uniform(0.0, 4.0, (own, 6, 3)).astype(np.float32)
    table = rng.dirichlet(np.ones(4), (6, 3)).astype(np.float32)
    rewards = rng.normal(size=(3, 6, 3)).astype(np.float32)
    value, policy = backward_induction(measures, matmul, table, rewards, bonus)
    expected, low, high, clipped = np.zeros(6), 0.0, 0.0, 0
    for h in (2, 1, 0):
        low, high = low + rewards[h].min(), high + rewards[h].max()
        q = rewards[h] + table @ (measures[h % own] @ expected) - bonus[h % own]
        clipped += (q < low).sum()
        q = np.clip(q, low, high)
        np.testing.assert_array_equal(policy[h], np.eye(3)[q.argmax(axis=1)])
        expected = q.max(axis=1)
    assert clipped > 0
    np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_plentiful_clean_data_give_the_exact_value(small_mdp):
    """Over eight data sets: mean value, and Danskin's ∂V̂ = E_π̂[φ], within five standard errors, and those are small."""
    mdp, lsvi, rlsvi = small_mdp, LSVI(), RLSVI()

    @jax.jit
    def estimate(key):
        data = sample_preferences(key, mdp, 4000)
        plain = lsvi.solve(lsvi.prepare(data, 0.0, key=key), mdp.theta)
        prepared = rlsvi.prepare(data, 0.0, key=key)

        def value(theta):
            result = rlsvi.solve(prepared, theta)
            return result.value, result

        slope, robust = jax.grad(value, has_aux=True)(mdp.theta)
        policies = jnp.stack([plain.policy, robust.policy])
        values = jnp.stack([plain.value, robust.value])
        gaps = jax.vmap(lambda p: normalised_gap(mdp, p))(policies)
        return values, gaps, slope - expected_features(mdp, robust.policy)

    values, gaps, differences = jax.lax.map(estimate, jax.random.split(jax.random.key(5), 8))
    exact = float(optimal_policy(mdp)[1])
    errors = np.std(values, axis=0, ddof=1) / np.sqrt(8)
    assert (errors < 0.02).all()
    assert (np.abs(np.mean(values, axis=0) - exact) < 5 * errors).all()
    assert (gaps < 0.01).all()
    errors = np.std(differences, axis=0, ddof=1) / np.sqrt(8)
    assert (errors < 0.02).all()
    assert (np.abs(np.mean(differences, axis=0)) < 5 * errors).all()


@pytest.mark.slow
@pytest.mark.parametrize("oracle", [LSVI(), RLSVI()], ids=["lsvi", "rlsvi"])
def test_derivative_against_central_differences(oracle, small_mdp64):
    """Exact without corruption; at ε = .1 the clip factors are constants to it: five per cent of its length."""
    mdp = small_mdp64
    data = sample_preferences(jax.random.key(1), mdp, 400)
    basis = np.eye(mdp.theta.size).reshape(-1, *mdp.theta.shape)

    def compare(epsilon):
        prepared = prepare(oracle, data, jnp.asarray(epsilon))
        value, slope = slope_at(oracle, prepared, mdp.theta)
        ends = [[slope_at(oracle, prepared, mdp.theta + s * 1e-5 * e)[0] for s in (1, -1)] for e in basis]
        return value, slope, np.array([(up - down) / 2e-5 for up, down in ends]).reshape(slope.shape)

    value, slope, differences = compare(0.0)
    np.testing.assert_allclose(slope, differences, rtol=1e-6, atol=1e-7)
    # V̂ is homogeneous of degree one in θ (Euler).
    np.testing.assert_allclose(np.sum(slope * mdp.theta), value, rtol=1e-9)
    _, slope, differences = compare(0.1)
    assert np.linalg.norm(differences - slope) < 0.05 * np.linalg.norm(slope)


@pytest.fixture(scope="module")
def data(make_mdp):
    return sample_preferences(jax.random.key(0), make_mdp(), 400)


@pytest.mark.slow
def test_the_bonus_is_pessimism(data, small_mdp):
    """Larger scales, larger ε and rarer features mean lower values; scale 0 means none."""
    theta = small_mdp.theta

    @jax.jit
    def value(scale, epsilon):
        oracle = RLSVI(bonus="relative", bonus_scale=scale)
        return oracle.solve(oracle.prepare(data, epsilon, key=jax.random.key(0)), theta).value

    plain = RLSVI()
    none = solve(plain, prepare(plain, data, jnp.asarray(0.0)), theta).value
    np.testing.assert_allclose(value(0.0, 0.0), none, rtol=1e-5)
    values = [float(value(s, 0.05)) for s in (0.0, 0.003, 0.01, 0.03, 1e6)]
    assert (np.diff(values) < 0).all()
    lowest = np.asarray(small_mdp.rewards()).min(axis=(1, 2)).sum()
    np.testing.assert_allclose(values[-1], lowest, rtol=1e-5, err_msg="the clip bounds pessimism")


@pytest.mark.slow
def test_the_bonus_is_the_formula(data):
    """Γ = scale·c·‖φ‖_{Λ⁻¹}, Λ = .6(E[φφᵀ] + (ε+λ)I), c = H(√ε + d/√n + 2√(d(ε+λ)))."""
    oracle, epsilon = RLSVI(bonus="relative", bonus_scale=0.5, ridge=1e-3), 0.04
    prepared = prepare(oracle, data, jnp.asarray(epsilon))
    table = np.asarray(data.state_features, np.float64)
    constant = 3 * (np.sqrt(epsilon) + 4 / np.sqrt(800) + 2 * np.sqrt(4 * (epsilon + 1e-3)))
    for h in range(3):
        moment = np.asarray(prepared.designs.second_moment[h], np.float64)
        inverse = np.linalg.inv(0.6 * (moment + (epsilon + 1e-3) * np.eye(4)))
        norms = np.sqrt(np.einsum("sad,de,sae->sa", table, inverse, table))
        np.testing.assert_allclose(prepared.bonus[h], 0.5 * constant * norms, rtol=1e-4)


@pytest.mark.slow
def test_the_default_bonus_costs_less_than_half_of_the_value(data, small_mdp):
    """Of what lies between the least return and the plain planner's value; the theory's own takes all of it."""
    plain, usual, theory = (
        RLSVI(bonus="relative", bonus_scale=jnp.asarray(scale)) for scale in (0.0, RLSVI().bonus_scale, 1.0)
    )
    values = [
        float(solve(oracle, prepare(oracle, data, jnp.asarray(0.05)), small_mdp.theta).value)
        for oracle in (theory, usual, plain)
    ]
    least = float(np.asarray(small_mdp.rewards()).min(axis=(1, 2)).sum())
    np.testing.assert_allclose(values[0], least, rtol=1e-5)
    assert least + 0.5 * (values[2] - least) < values[1] < values[2]


@pytest.mark.slow
def test_the_default_ridge_adds_little_to_the_bonus(data):
    usual, none = (
        prepare(RLSVI(bonus="relative", ridge=ridge), data, jnp.zeros(())).bonus
        for ridge in (RLSVI().ridge, 0.0)
    )
    np.testing.assert_allclose(usual, none, rtol=0.5)
    assert (np.asarray(usual) > np.asarray(none)).all()


def test_unknown_bonus_is_named():
    with pytest.raises(ValueError, match="bonus='much' is unknown"):
        RLSVI(bonus="much")


@pytest.mark.slow
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


def test_as_many_pairs_as_steps_give_each_step_one(data):
    phi, following = jax.eval_shape(lambda d: fresh_folds(jax.random.key(0), d.take(np.arange(3))), data)
    assert phi.shape == (3, 2, 4)
    assert following.shape == (3, 2)


def test_too_few_pairs_for_fresh_data(data):
    few = data.take(jnp.arange(2))
    with pytest.raises(ValueError, match="2 pairs cannot give 3 steps a fold"):
        RLSVI(fresh_data=True).prepare(few, 0.1, key=jax.random.key(0))


@pytest.mark.slow
def test_corrupt_first_states_are_outvoted(small_mdp):
    """Rows that claim a far better first state move the plain mean by ε·jump; known ρ ignores them."""
    mdp = small_mdp
    data = sample_preferences(jax.random.key(4), mdp, 400)
    oracle = RLSVI(initial=mdp.initial_distribution)
    corrupted = dataclasses.replace(data, states=data.states.at[:40, :, 0].set(0))
    values = [solve(oracle, prepare(oracle, d, jnp.asarray(0.1)), mdp.theta).value for d in (data, corrupted)]
    np.testing.assert_allclose(values[0], values[1], rtol=1e-6)


@pytest.mark.slow
def test_corrupted_transitions_on_a_chain():
    """Where one wrong transition decides, the plain planner stays ashore and the robust one swims."""
    mdp = chain_mdp()
    damage = jax.jit(lambda key: corrupt_transitions(key, sample_preferences(key, mdp, 4_000), 0.1, mdp))
    robust, plain = RLSVI(), LSVI()
    gaps = {"robust": [], "plain": []}
    for seed in range(2):
        data = damage(jax.random.key(seed))
        for name, oracle in (("robust", robust), ("plain", plain)):
            result = solve(oracle, prepare(oracle, data, jnp.asarray(0.1)), mdp.theta)
            gaps[name].append(float(normalised_gap(mdp, result.policy)))
    assert max(gaps["robust"]) < 0.02
    assert min(gaps["plain"]) > 5 * max(gaps["robust"])


@pytest.mark.slow
def test_first_states_are_averaged_robustly_unless_the_start_is_known(data):
    """The Huber mean clips at 1/√ε standard deviations; with ρ given, or ε = 0, nothing is clipped."""
    multiple = {}
    for name, oracle in {"data": RLSVI(), "known": RLSVI(initial=jnp.full(6, 1 / 6))}.items():
        prepare = jax.jit(oracle.prepare)
        for epsilon in (0.0, 0.1):
            prepared = prepare(data, jnp.asarray(epsilon, jnp.float32), key=jax.random.key(0))
            multiple[name, epsilon] = float(prepared.initial_multiple)
    np.testing.assert_allclose(multiple.pop(("data", 0.1)), 0.1**-0.5, rtol=1e-6)
    assert set(multiple.values()) == {np.inf}


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: RLSVI(initial=jnp.ones(6)), "initial is not a distribution"),
        (lambda: RLSVI(initial=jnp.array([1.5, -0.5])), "initial is not a distribution"),
        (lambda: RLSVI(initial=jnp.array([jnp.nan, 1.0])), "initial is not a distribution"),
        (lambda: RLSVI(ridge=-0.1), r"ridge=-0\.1 must be at least 0"),
        (lambda: RLSVI(ridge=float("nan")), "ridge=nan must be at least 0"),
        (lambda: RLSVI(bonus_scale=-1.0), r"bonus_scale=-1\.0 must be at least 0"),
        (lambda: LSVI(ridge=-1.0), r"ridge=-1\.0 must be at least 0"),
    ],
)
def test_settings_that_no_oracle_has_are_named(make, said):
    with pytest.raises(ValueError, match=said):
        make()


def test_an_oracle_of_other_states_than_the_data_is_named():
    mdp = chain_mdp(n_states=6, dim=4, horizon=2)
    data = sample_preferences(jax.random.key(0), mdp, 10)
    others = RLSVI(initial=jnp.ones(5) / 5), ExactOracle(chain_mdp(n_states=5, dim=4, horizon=2))
    for oracle, said in zip(others, (r"initial has shape \(5,\)", r"\[S, A\] = \(5, 2\)"), strict=True):
        with pytest.raises(ValueError, match=said):
            prepare(oracle, data, jnp.float32(0.1))
