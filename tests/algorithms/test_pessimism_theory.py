"""The pessimistic objective: facts of its theory, and its minimum against linear programs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from bellman_flow import flow_constraints
from scipy.optimize import linprog

from robust_rlhf_jax.algorithms import (
    ConditionNumberConfig,
    DescentConfig,
    Smoothing,
    condition_number,
)
from robust_rlhf_jax.algorithms.descent import DescentProblem, descend
from robust_rlhf_jax.algorithms.pessimism_objective import PessimismObjective
from robust_rlhf_jax.kernels.smoothing import sample_directions
from robust_rlhf_jax.mdp import expected_features, optimal_policy
from robust_rlhf_jax.oracles import ExactOracle

from .cutting_planes import minimum_over_confidence_set, value_program
from .test_descent import Box


@pytest.fixture
def values(small_mdp64):
    """θ ↦ (V★(θ), E_π★[φ]) on flat θ."""
    mdp = small_mdp64

    @jax.jit
    def at(theta):
        policy, value = optimal_policy(mdp, theta.reshape(mdp.horizon, mdp.dim))
        return value, expected_features(mdp, policy).reshape(-1)

    return mdp, at


def pairs_of_rewards(mdp, count=50):
    rng = np.random.default_rng(0)
    k = mdp.horizon * mdp.dim
    return rng.normal(size=(count, 2, k)) * rng.uniform(0.1, 3.0, (count, 2, 1))


def test_optimal_value_is_convex_lipschitz_and_has_its_subgradient(values):
    mdp, at = values
    for a, b in pairs_of_rewards(mdp):
        (va, slope), (vb, _), (middle, _) = at(a), at(b), at(0.5 * (a + b))
        assert middle <= 0.5 * (va + vb) + 1e-12
        assert vb >= va + slope @ (b - a) - 1e-12
        # ‖E_π[φ(τ)]‖ ≤ √H is sharper than the √(Hd) of the paper.
        assert abs(va - vb) <= np.sqrt(mdp.horizon) * np.linalg.norm(a - b) + 1e-12


@pytest.mark.slow
def test_smoothing_moves_the_value_by_at_most_its_bound(values):
    """|f_μ − f| ≤ μL√k, and ∇f_μ is a μL√k-subgradient; both within 5 standard errors of 20,000 directions."""
    mdp, at = values
    k, mu = mdp.horizon * mdp.dim, 0.3
    bias = mu * np.sqrt(mdp.horizon * k)
    u = sample_directions(jax.random.key(0), 20_000, k, dtype=jnp.float64)
    for theta, other in pairs_of_rewards(mdp, 3):
        here, shifted = at(theta)[0], jax.vmap(lambda point: at(point)[0])(theta + mu * u)
        error = 5 * jnp.std(shifted) / len(u) ** 0.5
        # Smoothing a convex function raises it (Jensen).
        assert -error <= jnp.mean(shifted) - here <= bias + error
        rise = (shifted - here) / mu * (u @ (other - theta))
        error = 5 * jnp.std(rise) / len(u) ** 0.5
        assert at(other)[0] >= here + jnp.mean(rise) - bias - error


def max_min(mdp, reference, bound):
    """max over occupancies q of min over |θ_i| ≤ bound of (Φᵀq − ref)·θ = −bound·‖Φᵀq − ref‖₁, by HiGHS."""
    flow, entering = flow_constraints(mdp)
    k, n_pairs = len(reference), flow.shape[1]
    phi = np.asarray(mdp.features).reshape(-1, mdp.dim)
    features = np.kron(np.eye(mdp.horizon), phi.T)
    slack = np.eye(k)
    upper = np.block([[features, -slack], [-features, -slack]])
    cost = np.concatenate([np.zeros(n_pairs), bound * np.ones(k)])
    flow = np.hstack([flow, np.zeros((len(flow), k))])
    return -linprog(cost, upper, np.concatenate([reference, -reference]), flow, entering).fun


def min_max(mdp, reference, bound):
    """min over |θ_i| ≤ bound of V★(θ) − ref·θ, by HiGHS."""
    matrix, right, cost = value_program(mdp)
    k = len(reference)
    cost[:k] -= reference
    bounds = [(-bound, bound)] * k + [(None, None)] * (len(cost) - k)
    return linprog(cost, matrix, right, bounds=bounds).fun


@pytest.mark.slow
def test_min_max_is_max_min_and_descent_finds_it(small_mdp64, random_policy):
    """Over a box of rewards; the reference mixes occupancies with something unreachable, so that the value is not 0."""
    mdp = small_mdp64
    reachable = np.asarray(expected_features(mdp, random_policy(mdp))).reshape(-1)
    reference = reachable + 0.2 * np.random.default_rng(1).normal(size=reachable.shape)
    expected = max_min(mdp, reference, 1.0)
    np.testing.assert_allclose(min_max(mdp, reference, 1.0), expected, rtol=1e-9)
    assert expected < -0.1
    objective = PessimismObjective(
        ExactOracle(mdp), mdp, jnp.asarray(reference), Smoothing(), mdp.horizon, False, "oracle"
    )
    box = Box(jnp.zeros(reference.shape), jnp.asarray(1.0))
    problem = DescentProblem(objective, box, box.centre, jnp.asarray(2.0), 1000.0)
    found = descend(problem, key=jax.random.key(0), steps=1000)
    reached = objective.evaluate(found.theta, None, key=jax.random.key(0)).value
    assert expected - 1e-9 <= reached <= expected + 0.02 * abs(expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    "descent",
    [
        DescentConfig(gradient="autodiff"),
        DescentConfig(gradient="oracle"),
        DescentConfig(steps=1000, smoothing=Smoothing(n_directions=64, std=0.01)),
    ],
    ids=["autodiff", "oracle", "zero_order"],
)
def test_objective_is_within_two_percent_of_cutting_planes(descent, holes):
    mdp, data, reference = holes
    config = ConditionNumberConfig(zeta=0.02, reuse_data=True, descent=descent)
    key, radius = jax.random.key(0), data.theta_dim**0.5
    found = condition_number(key, data, 0.0, oracle=ExactOracle(mdp), reference=reference, config=config)
    centre = np.asarray(found.diagnostics["theta_estimate"]).reshape(-1)
    args = (np.asarray(data.differences()), np.asarray(data.labels), centre, 0.02, radius)
    lower, upper = minimum_over_confidence_set(mdp, *args, np.asarray(reference).reshape(-1))
    assert upper <= lower + 1e-4 * abs(lower)
    reached = found.diagnostics["objective"]
    assert lower * (1 - 1e-6) <= reached <= 1.02 * lower
    assert found.diagnostics["projection_solves"] <= 3 * descent.steps
