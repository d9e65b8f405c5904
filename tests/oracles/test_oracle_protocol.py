"""What every oracle promises, and the exact one's own tests."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax import (
    LSVI,
    RLSVI,
    ExactOracle,
    Oracle,
    OracleResult,
    Status,
    expected_features,
    optimal_policy,
    sample_preferences,
)

ORACLES = {
    "exact": lambda mdp: ExactOracle(mdp),
    "lsvi": lambda mdp: LSVI(),
    "rlsvi": lambda mdp: RLSVI(),
    "rlsvi_relative": lambda mdp: RLSVI(bonus="relative"),
    "rlsvi_fresh": lambda mdp: RLSVI(fresh_data=True),
    "rlsvi_known_start": lambda mdp: RLSVI(initial=mdp.initial_distribution),
}


@pytest.fixture(scope="module")
def world(make_mdp):
    """Two data sets of one shape."""
    mdp = make_mdp()
    return mdp, [sample_preferences(jax.random.key(seed), mdp, 400) for seed in (0, 1)]


@pytest.mark.parametrize("name", ORACLES)
def test_protocol(name, world, count_compilations):
    mdp, (data, other) = world
    oracle = ORACLES[name](mdp)
    assert isinstance(oracle, Oracle)
    prepare = jax.jit(lambda d, e, k: oracle.prepare(d, e, key=k))
    solve = eqx.filter_jit(oracle.solve)
    solve_many = eqx.filter_jit(jax.vmap(oracle.solve, in_axes=(None, 0)))
    key, new_key = jax.random.split(jax.random.key(2))
    prepared = prepare(data, np.float32(0.0), key)
    thetas = np.random.default_rng(0).normal(size=(3, 3, 4)).astype(np.float32)
    batch = solve_many(prepared, thetas)
    for i, theta in enumerate(thetas):
        result = solve(prepared, theta)
        assert isinstance(result, OracleResult)
        assert result.value.shape == result.status.shape == ()
        assert result.status.dtype == jnp.int32
        assert result.status == Status.CONVERGED
        assert result.policy.shape == (3, 6, 3)
        np.testing.assert_array_equal(np.sort(result.policy, axis=-1), np.broadcast_to([0, 0, 1], (3, 6, 3)))
        assert result.subgradient is None or result.subgradient.shape == theta.shape
        np.testing.assert_allclose(batch.value[i], result.value, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(batch.policy[i], result.policy)
    with count_compilations() as count:
        again = solve(prepare(other, np.float32(0.1), new_key), -thetas[0])
        jax.block_until_ready(again)
    assert count.compiled == count.traced == []
    assert np.isfinite(again.value)
    # The same inputs give the same answer.
    repeated = solve(prepare(data, np.float32(0.0), key), thetas[0])
    np.testing.assert_array_equal(repeated.value, solve(prepared, thetas[0]).value)


@pytest.mark.parametrize("name", ["lsvi", "rlsvi", "rlsvi_relative"])
def test_values_scale_with_theta(name, world):
    """The clip follows the rewards' range, so that nothing but the bonus fixes a scale."""
    mdp, (data, _) = world
    oracle = ORACLES[name](mdp)
    prepared = jax.jit(lambda d: oracle.prepare(d, 0.0, key=jax.random.key(0)))(data)
    solve = eqx.filter_jit(oracle.solve)
    one, ten = solve(prepared, mdp.theta), solve(prepared, 10.0 * mdp.theta)
    if name == "rlsvi_relative":
        assert ten.value > 10.0 * one.value
    else:
        np.testing.assert_allclose(ten.value, 10.0 * one.value, rtol=1e-4)
        np.testing.assert_array_equal(ten.policy, one.policy)


@pytest.mark.parametrize("name", ["lsvi", "rlsvi"])
def test_nan_is_reported_and_stays_in_its_lane(name, world):
    mdp, (data, _) = world
    oracle = ORACLES[name](mdp)
    prepare = jax.jit(lambda d: oracle.prepare(d, 0.05, key=jax.random.key(0)))
    prepared = prepare(data)
    solve = eqx.filter_jit(jax.vmap(oracle.solve, in_axes=(None, 0)))
    thetas = jnp.stack([mdp.theta, 2 * mdp.theta, -mdp.theta])
    clean, spoilt = solve(prepared, thetas), solve(prepared, thetas.at[1, 0, 0].set(jnp.nan))
    assert spoilt.status[1] == Status.NONFINITE
    for lane in (0, 2):
        np.testing.assert_array_equal(spoilt.value[lane], clean.value[lane])
        np.testing.assert_array_equal(spoilt.policy[lane], clean.policy[lane])
        assert spoilt.status[lane] == clean.status[lane]
    bad = dataclasses.replace(data, features=data.features.at[0, 0, 0, 0].set(jnp.nan))
    assert (solve(prepare(bad), thetas).status == Status.NONFINITE).all()


def test_exact_oracle_is_the_planner(small_mdp64):
    mdp = small_mdp64
    oracle = ExactOracle(mdp)
    rng = np.random.default_rng(1)
    for theta in rng.normal(size=(3, *mdp.theta.shape)):
        result = oracle.solve(oracle.prepare(None, 0.0, key=None), jnp.asarray(theta))
        policy, value = optimal_policy(mdp, jnp.asarray(theta))
        np.testing.assert_array_equal(result.policy, policy)
        np.testing.assert_allclose(result.value, value, rtol=1e-12)
        np.testing.assert_allclose(result.subgradient, expected_features(mdp, policy), rtol=1e-12)
        # Away from ties V★ is linear around θ, so that central differences are exact.
        for direction in rng.normal(size=(3, *theta.shape)):
            ends = [optimal_policy(mdp, jnp.asarray(theta + s * 1e-6 * direction))[1] for s in (1, -1)]
            slope = np.sum(np.asarray(result.subgradient) * direction)
            np.testing.assert_allclose((ends[0] - ends[1]) / 2e-6, slope, rtol=1e-7, atol=1e-8)
            # Subgradient inequality, far away: V★ is convex.
            far = optimal_policy(mdp, jnp.asarray(theta + direction))[1]
            assert far >= result.value + slope - 1e-12
