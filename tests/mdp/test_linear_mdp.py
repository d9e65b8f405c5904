"""Every family is a linear MDP, and the check refuses what is not."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slow_parameters import slow_where

from robust_rlhf_jax.lab.worlds import (
    chain_mdp,
    gridworld,
    hard_instance,
    partial_coverage_mdp,
    random_linear_mdp,
)
from robust_rlhf_jax.mdp import LinearMDP, check_linear_mdp, uniform_policy

# Jitted where the builder can be traced: run eagerly, each of its operations is compiled by itself.
BUILDERS = {
    "chain": lambda key: chain_mdp(),
    "gridworld": lambda key: gridworld(key, size=12, horizon=4),
    "hard_instance": jax.jit(lambda key: hard_instance(key)[0]),
    "partial_coverage": jax.jit(lambda key: partial_coverage_mdp(key)[0]),
    "random": jax.jit(lambda key: random_linear_mdp(key, n_states=6, n_actions=3, dim=4, horizon=3)),
}


def transition_matrix(mdp):
    """P [H, S, A, S] in float64 from the definition, as the package never forms it."""
    return np.einsum(
        "sad,hdt->hsat", np.asarray(mdp.features, np.float64), np.asarray(mdp.transition_measures, np.float64)
    )


@pytest.mark.parametrize("family", slow_where("partial_coverage".__eq__, BUILDERS))
@pytest.mark.parametrize("seed", [0, 1])
def test_every_family_is_a_linear_mdp(family, seed):
    mdp = BUILDERS[family](jax.random.key(seed))
    check_linear_mdp(mdp)
    transitions = transition_matrix(mdp)
    assert transitions.min() >= -1e-6
    np.testing.assert_allclose(transitions.sum(axis=-1), 1.0, atol=2e-5)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(mdp))


@pytest.mark.parametrize("family", BUILDERS)
@pytest.mark.parametrize("wide", [False, True])
def test_every_family_keeps_one_dtype(family, wide):
    with jax.enable_x64(wide):
        build, key = BUILDERS[family], jax.random.key(0)
        # Tracing shows the dtypes without compiling; the two that NumPy builds cannot be traced.
        mdp = build(key) if family in ("chain", "gridworld") else jax.eval_shape(build, key)
    dtypes = [leaf.dtype for leaf in jax.tree.leaves(mdp)]
    assert len(set(dtypes)) == 1, dtypes


@pytest.mark.slow
@given(st.integers(0, 2**31 - 1))
def test_random_worlds_of_any_key(seed):
    mdp = BUILDERS["random"](jax.random.key(seed))
    check_linear_mdp(mdp)
    np.testing.assert_allclose(np.linalg.norm(mdp.theta, axis=-1), 2.0, rtol=1e-5)


@pytest.mark.slow
def test_the_smallest_world():
    mdp = random_linear_mdp(jax.random.key(0), n_states=1, n_actions=1, dim=1, horizon=1)
    check_linear_mdp(mdp)
    assert (mdp.horizon, mdp.n_states, mdp.n_actions, mdp.dim) == (1, 1, 1, 1)


def test_rotated_world_passes_the_check(small_mdp64, rotate_features):
    rotated = rotate_features(small_mdp64)
    assert np.min(rotated.features) < -0.01, "the rotation must make features signed"
    check_linear_mdp(rotated)
    np.testing.assert_allclose(transition_matrix(rotated), transition_matrix(small_mdp64), atol=1e-12)
    np.testing.assert_allclose(rotated.rewards(), small_mdp64.rewards(), atol=1e-12)


BROKEN = {
    "feature has norm": lambda m: {"features": m.features * 3.0},
    r"theta has shape \(2, 4\): this MDP needs \[H, p\] = \(3, 4\)": lambda m: {"theta": m.theta[:2]},
    r"initial_distribution has shape \(7,\)": lambda m: {"initial_distribution": jnp.ones(7) / 7},
    r"transition_measures has shape \(3, 4, 5\)": lambda m: {
        "transition_measures": m.transition_measures[..., :5]
    },
    r"reward_features has shape \(5, 3, 4\)": lambda m: {"reward_features": m.features[:5]},
    "reward_features holds NaN": lambda m: {"reward_features": m.features.at[0, 0, 0].set(jnp.nan)},
    "theta_h has norm": lambda m: {"theta": m.theta * 1.01},
    "initial_distribution": lambda m: {"initial_distribution": m.initial_distribution * 0.99},
    "P_2": lambda m: {"transition_measures": m.transition_measures.at[1].multiply(1.01)},
}


@pytest.mark.parametrize("message", BROKEN)
def test_check_names_what_is_broken(small_mdp, message):
    broken = dataclasses.replace(small_mdp, **BROKEN[message](small_mdp))
    with pytest.raises(ValueError, match=message):
        check_linear_mdp(broken)


def test_check_refuses_negative_probabilities_that_sum_to_one(small_mdp):
    initial = jnp.array([1.2, -0.2, 0.0, 0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="initial_distribution"):
        check_linear_mdp(dataclasses.replace(small_mdp, initial_distribution=initial))
    measures = jnp.broadcast_to(initial, small_mdp.transition_measures.shape)
    with pytest.raises(ValueError, match=r"smallest entry -0\.2"):
        check_linear_mdp(dataclasses.replace(small_mdp, transition_measures=measures))


def test_check_finds_a_negative_row_in_the_last_block():
    """More than 4,096 rows and signed features: only the last row is bad."""
    n_states = 4200
    phi = np.zeros((n_states, 1, 2))
    phi[:, 0, 0] = 1.0
    phi[-1, 0] = [0.8, -0.2]
    measures = np.zeros((1, 2, n_states))
    measures[0, 0, 0], measures[0, 1, 1] = 1.0, -1.0
    mdp = LinearMDP(phi, measures, np.zeros((1, 2)), np.eye(n_states)[0])
    check_linear_mdp(mdp)
    measures[0, 1] = 0.0
    measures[0, 1, :2] = [-2.0, 1.0]
    with pytest.raises(ValueError, match=r"P_1.*smallest entry -0\.2"):
        check_linear_mdp(LinearMDP(phi, measures, np.zeros((1, 2)), np.eye(n_states)[0]))


def test_check_refuses_a_measure_that_is_large_where_no_feature_looks(small_mdp):
    """‖μ_h(𝒮)‖ ≤ √d is a condition of its own: the transitions are those of `small_mdp`."""
    features = jnp.pad(small_mdp.features, ((0, 0), (0, 0), (0, 1)))
    measures = jnp.pad(small_mdp.transition_measures, ((0, 0), (0, 1), (0, 0)), constant_values=10.0)
    theta = jnp.pad(small_mdp.theta, ((0, 0), (0, 1)))
    hidden = dataclasses.replace(small_mdp, features=features, transition_measures=measures, theta=theta)
    with pytest.raises(ValueError, match="bound is sqrt"):
        check_linear_mdp(hidden)


@pytest.mark.parametrize("field", ["features", "transition_measures", "theta", "initial_distribution"])
def test_check_refuses_nan(small_mdp, field):
    corrupted = getattr(small_mdp, field).at[..., 0].set(jnp.nan)
    with pytest.raises(ValueError, match=r"."):
        check_linear_mdp(dataclasses.replace(small_mdp, **{field: corrupted}))


@pytest.mark.parametrize("name", ["n_states", "n_actions", "dim", "horizon"])
def test_sizes_below_one_are_refused(name):
    sizes = {"n_states": 3, "n_actions": 2, "dim": 2, "horizon": 2} | {name: 0}
    with pytest.raises(ValueError, match=f"{name}=0"):
        random_linear_mdp(jax.random.key(0), **sizes)


def test_rewards_use_their_own_features_and_theta(small_mdp):
    rng = np.random.default_rng(0)
    table = rng.normal(size=(6, 3, 2)).astype(np.float32)
    theta = rng.normal(size=(3, 2)).astype(np.float32)
    mdp = dataclasses.replace(small_mdp, reward_features=jnp.asarray(table), theta=jnp.asarray(theta))
    expected = np.array([[[table[s, a] @ theta[h] for a in range(3)] for s in range(6)] for h in range(3)])
    np.testing.assert_allclose(mdp.rewards(), expected, atol=1e-5)
    np.testing.assert_allclose(mdp.rewards(-2 * mdp.theta), -2 * expected, atol=1e-5)
    assert mdp.dim == 4


def test_uniform_policy(small_mdp):
    np.testing.assert_allclose(uniform_policy(small_mdp), np.full((3, 6, 3), 1 / 3), rtol=1e-6)


def test_a_batch_of_worlds_can_be_traced():
    build = lambda key: random_linear_mdp(key, n_states=6, n_actions=3, dim=4, horizon=3)  # noqa: E731
    batch = jax.eval_shape(jax.vmap(build), jax.random.split(jax.random.key(3), 5))
    assert batch.features.shape == (5, 6, 3, 4)
    assert (batch.horizon, batch.n_states, batch.n_actions, batch.dim) == (3, 6, 3, 4)
