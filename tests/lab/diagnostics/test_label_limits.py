"""The limits of label corruption: the coupling does what is claimed, the bound is what a linear program finds."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bellman_flow import flow_constraints
from scipy.optimize import linprog

from robust_rlhf_jax import sample_preferences
from robust_rlhf_jax.algorithms import standard
from robust_rlhf_jax.lab.diagnostics import (
    erasure_level,
    label_budget,
    label_distance,
    label_lower_bound,
    reversal_level,
    two_world_gap,
)
from robust_rlhf_jax.lab.worlds import chain_mdp
from robust_rlhf_jax.mdp import LinearMDP, normalised_gap, optimal_policy
from robust_rlhf_jax.oracles import ExactOracle


def gap_by_program(mdp, other):
    """min over occupancies q of the larger of the two normalised gaps, by HiGHS."""
    matrix, entering = flow_constraints(mdp)
    rows, offsets = [], []
    for theta in (mdp.theta, other):
        reward = np.asarray(mdp.rewards(theta)).ravel()
        best = float(optimal_policy(mdp, theta)[1])
        span = best + float(optimal_policy(mdp, -theta)[1])
        rows.append(np.append(-reward / span, -1.0))  # V★/R − q·r/R ≤ t
        offsets.append(-best / span)
    cost = np.append(np.zeros(matrix.shape[1]), 1.0)
    equal = np.hstack([matrix, np.zeros((len(matrix), 1))])
    found = linprog(cost, A_ub=np.array(rows), b_ub=offsets, A_eq=equal, b_eq=entering, method="highs")
    return found.fun


def test_two_world_gap_is_the_linear_programs(small_mdp64):
    noise = np.random.default_rng(0).normal(size=(3, *small_mdp64.theta.shape))
    for other in (*noise, -np.asarray(small_mdp64.theta)):
        found = two_world_gap(small_mdp64, jnp.asarray(other))
        np.testing.assert_allclose(found, gap_by_program(small_mdp64, jnp.asarray(other)), atol=1e-6)


def test_two_world_gap_of_a_world_with_itself_and_with_its_opposite(small_mdp64):
    assert float(two_world_gap(small_mdp64, small_mdp64.theta)) == pytest.approx(0.0, abs=1e-9)
    assert float(two_world_gap(small_mdp64, -0.1 * small_mdp64.theta)) == pytest.approx(0.5)
    modest = two_world_gap(small_mdp64, -0.1 * small_mdp64.theta, own_range=False)
    assert float(modest) == pytest.approx(1 / 11)  # λ/(1 + λ) of stakes 1 : λ


def test_coupled_labels_look_like_the_other_world():
    """Flip by the maximal coupling: within five standard errors, in number and in every score o·x."""
    rng = np.random.default_rng(0)
    x, theta, other = rng.normal(size=(40_000, 3)), np.array([1.5, -1, 0.5]), np.array([0.3, 0.6, -0.2])
    p, q = (1 / (1 + np.exp(-x @ t)) for t in (theta, other))
    labels = np.where(rng.uniform(size=len(x)) < p, 1, -1)
    chance = np.where(labels == 1, np.maximum(p - q, 0) / p, np.maximum(q - p, 0) / (1 - p))
    shown = np.where(rng.uniform(size=len(x)) < chance, -labels, labels)
    scores = (shown - (2 * q - 1))[:, None] * np.column_stack([np.ones(len(x)), x, np.abs(x)])
    assert np.all(np.abs(scores.mean(axis=0)) <= 5 * scores.std(axis=0) / np.sqrt(len(x)))
    cost = (shown != labels).mean()
    distance = float(label_distance(*map(jnp.asarray, (x, theta, other))))
    assert abs(cost - distance) <= 5 * np.sqrt(distance / len(x))
    assert label_budget(distance + 0.02, len(x), 0.01) > cost - 0.02


def test_levels_by_hand():
    x, theta = jnp.array([[1.0], [-2.0]]), jnp.array([1.0])
    want = np.mean(1 / (1 + np.exp([-1.0, -2.0])) - 0.5)
    assert float(erasure_level(x, theta)) == pytest.approx(want, abs=1e-6)
    assert float(reversal_level(x, theta)) == pytest.approx(2 * want, abs=1e-6)
    assert float(label_budget(0.1, 100, 0.01)) == 0.0


@pytest.fixture(scope="module")
def chain():
    mdp = chain_mdp(n_states=6, n_actions=2, dim=4, horizon=2, exploring_starts=True)
    return mdp, sample_preferences(jax.random.key(0), mdp, 1000)


@pytest.mark.slow
def test_lower_bound_starts_at_nothing_grows_and_is_half_where_labels_are_erased(chain):
    mdp, data = chain
    x = data.differences()
    half = float(erasure_level(x, mdp.theta.reshape(-1))) / 2
    levels = jnp.array([0.0, 0.02, half / 2, 1.05 * half])
    found = label_lower_bound(mdp, x, levels, key=jax.random.key(1), steps=20)
    assert float(found.gap[0]) == pytest.approx(0.0, abs=1e-5)
    assert np.all(np.diff(found.gap) >= 0)
    assert float(found.gap[-1]) == pytest.approx(0.5, abs=1e-2)
    assert np.all(np.asarray(found.distance) <= 2 * np.asarray(levels) * (1 + 1e-4) + 1e-6)
    assert np.all(np.linalg.norm(found.theta, axis=(1, 2)) <= (mdp.horizon * mdp.dim) ** 0.5 * (1 + 1e-5))


@pytest.mark.slow
def test_no_algorithm_beats_the_bound_where_labels_are_coin_flips(chain):
    """The fit to erased labels, in θ★'s world and in its opposite: the same policy, one of the two gaps ≥ ½."""
    mdp, data = chain
    coins = jnp.where(jax.random.bernoulli(jax.random.key(2), shape=(data.n_pairs,)), 1.0, -1.0)
    erased = eqx.tree_at(lambda d: d.labels, data, coins)
    policy = standard(jax.random.key(3), erased, 0.0, oracle=ExactOracle(mdp)).policy
    opposite = LinearMDP(mdp.features, mdp.transition_measures, -mdp.theta, mdp.initial_distribution)
    gaps = [float(normalised_gap(world, policy)) for world in (mdp, opposite)]
    assert max(gaps) >= 0.5 - 1e-5


@pytest.mark.parametrize(
    ("change", "message"),
    [({"epsilon": 0.5}, "outside"), ({"x": jnp.ones((5, 3))}, "needs"), ({"starts": 1}, "2 or more")],
)
def test_wrong_arguments(small_mdp, change, message):
    given = {"mdp": small_mdp, "x": jnp.ones((5, 12)), "epsilon": 0.1, "key": jax.random.key(0), **change}
    with pytest.raises(ValueError, match=message):
        label_lower_bound(**given)
