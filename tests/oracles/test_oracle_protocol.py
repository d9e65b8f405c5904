"""What every oracle promises, and the exact one's own tests."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from slow_parameters import slow_but_few

from robust_rlhf_jax import Status, sample_preferences
from robust_rlhf_jax.mdp import expected_features, optimal_policy
from robust_rlhf_jax.oracles import (
    LSVI,
    RLSVI,
    ExactOracle,
    Oracle,
    OracleResult,
    PrimalDual,
    WarmOracle,
    solve_many,
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


@pytest.mark.parametrize("name", slow_but_few(ORACLES, 1))
def test_protocol(name, world, count_compilations):
    """Shapes, statuses, batches and NaN lanes, all on one program for one θ and one for three."""
    mdp, (data, other) = world
    oracle = ORACLES[name](mdp)
    assert isinstance(oracle, Oracle)
    prepare = jax.jit(lambda d, e, k: oracle.prepare(d, e, key=k))
    solve = eqx.filter_jit(oracle.solve)
    solve_three = eqx.filter_jit(jax.vmap(oracle.solve, in_axes=(None, 0)))
    key, new_key = jax.random.split(jax.random.key(2))
    prepared = prepare(data, np.float32(0.0), key)
    thetas = np.random.default_rng(0).normal(size=(3, 3, 4)).astype(np.float32)
    batch = solve_three(prepared, thetas)
    results = [solve(prepared, theta) for theta in thetas]
    for i, result in enumerate(results):
        assert isinstance(result, OracleResult)
        assert result.value.shape == result.status.shape == ()
        assert result.status.dtype == jnp.int32
        assert result.status == Status.CONVERGED
        assert result.policy.shape == (3, 6, 3)
        np.testing.assert_array_equal(np.sort(result.policy, axis=-1), np.broadcast_to([0, 0, 1], (3, 6, 3)))
        assert result.subgradient is None or result.subgradient.shape == (3, 4)
        np.testing.assert_allclose(batch.value[i], result.value, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(batch.policy[i], result.policy)
    with count_compilations() as count:
        again = solve(prepare(other, np.float32(0.1), new_key), -thetas[0])
        jax.block_until_ready(again)
    assert count.compiled == count.traced == []
    assert np.isfinite(again.value)
    repeated = solve(prepare(data, np.float32(0.0), key), thetas[0])
    np.testing.assert_array_equal(repeated.value, results[0].value)

    # The clip follows the rewards' range: nothing but the bonus, subtracted H times, fixes a scale.
    ten = solve(prepared, 10 * thetas[0])
    if name == "rlsvi_relative":
        assert ten.value > 10 * results[0].value
    else:
        np.testing.assert_allclose(ten.value, 10 * results[0].value, rtol=1e-4)
        np.testing.assert_array_equal(ten.policy, results[0].policy)

    corrupted = thetas.copy()
    corrupted[1, 0, 0] = np.nan
    lanes = solve_three(prepared, corrupted)
    assert lanes.status[1] == Status.NONFINITE
    for lane in (0, 2):
        np.testing.assert_array_equal(lanes.value[lane], batch.value[lane])
        np.testing.assert_array_equal(lanes.policy[lane], batch.policy[lane])
        assert lanes.status[lane] == batch.status[lane]
    features = np.array(data.features)
    features[..., 0] = np.nan
    bad = prepare(dataclasses.replace(data, features=jnp.asarray(features)), np.float32(0.0), key)
    # The exact oracle does not look at data.
    expected = Status.CONVERGED if name == "exact" else Status.NONFINITE
    np.testing.assert_array_equal(solve_three(bad, thetas).status, int(expected))


@pytest.mark.parametrize("name", [*ORACLES, "primal_dual"])
def test_the_key_of_an_oracle_goes_by_name(name, world):
    mdp, (data, _) = world
    oracle = PrimalDual() if name == "primal_dual" else ORACLES[name](mdp)
    with pytest.raises(TypeError, match="positional"):
        oracle.prepare(data, 0.0, jax.random.key(0))


def test_only_an_oracle_that_goes_on_from_an_answer_is_warm():
    assert isinstance(PrimalDual(), WarmOracle)
    assert not isinstance(LSVI(), WarmOracle)


@pytest.mark.slow
def test_chunks_change_nothing(world):
    _, (data, _) = world
    oracle = LSVI()
    prepared = jax.jit(lambda d: oracle.prepare(d, 0.0, key=None))(data)
    thetas = jnp.asarray(np.random.default_rng(1).normal(size=(5, 3, 4)), jnp.float32)
    whole, *others = (jax.jit(lambda t, c=c: solve_many(oracle, prepared, t, c))(thetas) for c in (5, 2, 1))
    for parts in others:
        np.testing.assert_allclose(parts.value, whole.value, rtol=1e-5)
        np.testing.assert_array_equal(parts.policy, whole.policy)
        assert parts.value.shape == (5,)
    with pytest.raises(ValueError, match="chunk=0"):
        solve_many(oracle, prepared, thetas, 0)


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
