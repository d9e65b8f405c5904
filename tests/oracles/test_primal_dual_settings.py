"""The settings of the primal–dual oracle: which are allowed, what they mean, what they are by default."""

import dataclasses
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from primal_dual_games import SHORT, prepare, solve

from robust_rlhf_jax import Status
from robust_rlhf_jax.oracles import PrimalDual, theory_steps
from robust_rlhf_jax.oracles.primal_dual.oracle import (
    PUBLISHED_POLICY_STEP,
    PUBLISHED_STEP,
    USUAL_COVERAGE,
)

BAD = {
    "steps": ({"steps": 0}, "steps=0"),
    "refresh": ({"steps": 100, "refresh": 30}, "multiple of refresh"),
    "no refresh": ({"refresh": 0}, "refresh=0"),
    "filter steps": ({"filter_steps": -1}, "filter_steps=-1"),
    "means": ({"robust_means": "magic"}, "robust_means='magic'"),
    "step size": ({"step_size": 0.0}, "step_size=0.0 must be positive"),
    "step name": ({"step_size": "magic"}, "step_size='magic' is unknown"),
    "later step name": ({"step_size": "zeal"}, "step_size='zeal' is unknown"),
    "coverage of the theory": ({"step_size": "theory", "coverage": 0.0}, "coverage=0.0"),
    "occupancy step of the theory": (
        {"step_size": "theory", "occupancy_step": 0.1},
        "occupancy_step=0.1 needs a number",
    ),
    "occupancy step": ({"step_size": 0.1, "occupancy_step": 0.0}, "occupancy_step=0.0 must be positive"),
    "occupancy step alone": ({"occupancy_step": 0.1}, "occupancy_step=0.1 needs a number as step_size"),
    "policy share": ({"policy_share": 0.0}, "policy_share=0.0 must be positive"),
    "policy step": ({"policy_step": -1.0}, "policy_step=-1.0"),
    "coverage": ({"coverage": 0.0}, "coverage=0.0"),
    "tolerance": ({"tolerance": -1.0}, "tolerance=-1.0"),
    "averaging": ({"averaging": -1.0}, "averaging=-1.0"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_settings_are_named_in_one_sentence(case):
    settings, message = BAD[case]
    with pytest.raises(ValueError, match=message) as error:
        PrimalDual(**settings)
    assert str(error.value).endswith(".")


def test_the_least_settings_are_allowed():
    PrimalDual(steps=1, refresh=1, filter_steps=0, averaging=0.0)
    PrimalDual(step_size=1e-6, occupancy_step=1e-6, policy_step=1e-6, coverage=1e-6, tolerance=1e-6)
    PrimalDual(policy_share=1e-6)


@pytest.mark.slow
def test_a_game_is_scaled_and_bounded_as_documented(world):
    """θ to rewards of at most 1, ‖w_h‖ ≤ 2H√d, ‖β‖² ≤ the coverage; η adapts and α is the share of E‖φ‖²."""
    mdp, data = world
    game = prepare(SHORT, data, jnp.float32(0.0))
    start = SHORT.start(game)
    problem, scale = SHORT._problem(game, 7.0 * mdp.theta, start)
    largest = 7.0 * np.abs(np.asarray(mdp.rewards())).max()
    np.testing.assert_allclose(scale, largest, rtol=1e-5)
    np.testing.assert_allclose(problem.theta, 7.0 * np.asarray(mdp.theta) / largest, rtol=1e-5)
    np.testing.assert_allclose(problem.radius_w, 2 * 3 * 4**0.5, rtol=1e-6)
    np.testing.assert_allclose(problem.radius_beta, (USUAL_COVERAGE * 3 * 4) ** 0.5, rtol=1e-6)
    np.testing.assert_allclose(problem.policy_step, SHORT.policy_share / game.mean_square, rtol=1e-6)
    assert problem.step_size == 0
    np.testing.assert_array_equal(problem.balance, [1.0, 1.0])
    np.testing.assert_allclose(problem.averaging, SHORT.averaging)
    assert problem.start is start
    given = dataclasses.replace(SHORT, coverage=9.0)._problem(game, mdp.theta, start)[0]
    np.testing.assert_allclose(given.radius_beta, 3.0, rtol=1e-6)
    assert SHORT._problem(game, 0.0 * mdp.theta, start)[1] == 1.0


STEPS = {
    "published": ({"optimistic": False}, (PUBLISHED_STEP, 1.0, PUBLISHED_POLICY_STEP)),
    "split": ({"sample_splitting": True}, (PUBLISHED_STEP, 1.0, 4.0)),
    "adaptive": ({}, (0.0, 1.0, 4.0)),
    "given": ({"step_size": 0.2}, (0.2, 1.0, 4.0)),
    "given twice": ({"step_size": 0.2, "occupancy_step": 0.1}, (0.2, 0.5, 4.0)),
    "longer for the occupancy": ({"step_size": 0.2, "occupancy_step": 0.3}, (0.2, 1.5, 4.0)),
    "policy": ({"policy_step": 3.0}, (0.0, 1.0, 3.0)),
    "theory": ({"step_size": "theory", "steps": 50}, theory_steps(5, 7, 3, 50, 2.0)),
}


@pytest.mark.parametrize("case", STEPS)
def test_steps_and_their_ratio(case):
    """E‖φ‖² is 2, so that a share of 8 makes α 4; the theory has two steps of w and β, and their ratio is asked."""
    settings, (step, ratio, policy) = STEPS[case]
    if case == "theory":
        ratio = ratio / step
    oracle = PrimalDual(**{"policy_share": 8.0} | settings)
    game = SimpleNamespace(table=np.zeros((6, 3, 7)), horizon=5, mean_square=2.0)
    np.testing.assert_allclose(oracle._steps(game, 2.0), (step, ratio, policy), rtol=1e-6)


def test_a_traced_step_is_that_of_both_players():
    game = SimpleNamespace(mean_square=2.0)
    ratio = jax.jit(lambda step: dataclasses.replace(SHORT, step_size=step)._steps(game, 2.0)[1])
    assert ratio(0.1) == 1.0


@pytest.mark.parametrize("averaging", [0.0, 3.0, 30.0])
@pytest.mark.parametrize("count", [0, 1, 25, 40])
def test_members_weigh_what_the_average_gives_them(averaging, count):
    """Iterate t joins with the share (p + 1)/(t + p); policies that were never played weigh nothing."""
    state = SimpleNamespace(logits=jnp.zeros((40, 3, 4)), count=count)
    found = dataclasses.replace(SHORT, averaging=averaging)._mixture_weights(state)
    expected = np.zeros(40)
    for t in range(1, max(count, 1) + 1):
        share = (averaging + 1) / (t + averaging)
        expected *= 1 - share
        expected[t - 1] += share
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-6)


def test_a_flow_that_is_off_by_a_quarter_has_not_converged_by_default():
    state = SimpleNamespace(means=SimpleNamespace(at=jnp.zeros((2, 3, 4))))
    found = PrimalDual()._status(SimpleNamespace(radius_beta=1.0), state, jnp.float32(0.25))
    assert found == Status.MAX_STEPS


@pytest.mark.slow
def test_groups_of_one_sample_are_the_smallest(world):
    """4,000 trajectories make 2HT = 3,996 groups for T = 666, and not 4,002."""
    _, data = world
    groups = lambda steps: PrimalDual(steps=steps, refresh=1, sample_splitting=True)  # noqa: E731
    shape = jax.eval_shape(lambda d: groups(666).prepare(d, 0.0, key=jax.random.key(0)), data)
    assert shape.order.shape == (4000,)
    with pytest.raises(ValueError, match=r"4000 trajectories cannot give 2·H·T = 4002 groups"):
        groups(667).prepare(data, 0.0, key=jax.random.key(0))


def test_theory_steps():
    """H/(ν√(dT)), ν/(d^{3/2}√(2(H²+1)T)), √(2 log A/(dT))/H."""
    found = theory_steps(5, 4, 3, 100, 2.0)
    np.testing.assert_allclose(
        found, (5 / 40, 2 / (8 * np.sqrt(5200)), np.sqrt(2 * np.log(3) / 400) / 5), rtol=1e-6
    )


@pytest.mark.slow
def test_theory_is_short_for_the_steps_of_the_analysis(world):
    mdp, data = world
    base = PrimalDual(steps=40, refresh=20, optimistic=False, whiten=False, averaging=0.0, coverage=48.0)
    prepared = prepare(base, data, jnp.float32(0.0))
    step, occupancy, policy = theory_steps(3, 4, 3, 40, 48.0)
    given = dataclasses.replace(base, step_size=step, occupancy_step=occupancy, policy_step=policy)
    a, b = (solve(o, prepared, mdp.theta) for o in (dataclasses.replace(base, step_size="theory"), given))
    np.testing.assert_allclose(a.subgradient, b.subgradient, rtol=1e-5)
    np.testing.assert_allclose(a.policy.logits, b.policy.logits, rtol=1e-4, atol=1e-7)
    same = solve(dataclasses.replace(base, step_size=step, policy_step=policy), prepared, mdp.theta)
    assert not np.allclose(same.subgradient, b.subgradient, rtol=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("oracle", "spelled_out"),
    [
        (SHORT, lambda mdp: {"coverage": 16.0 * mdp.horizon * mdp.dim}),
        (
            dataclasses.replace(SHORT, optimistic=False, averaging=0.0),
            lambda mdp: {"step_size": 0.05, "occupancy_step": 0.05, "policy_step": 5.0},
        ),
    ],
    ids=["coverage", "published steps"],
)
def test_defaults_are_what_the_documentation_says(world, oracle, spelled_out):
    mdp, data = world
    prepared = prepare(oracle, data, jnp.float32(0.0))
    usual = solve(oracle, prepared, mdp.theta)
    asked = solve(dataclasses.replace(oracle, **spelled_out(mdp)), prepared, mdp.theta)
    np.testing.assert_allclose(asked.value, usual.value, rtol=1e-6)
    np.testing.assert_allclose(asked.subgradient, usual.subgradient, rtol=1e-4, atol=1e-6)
