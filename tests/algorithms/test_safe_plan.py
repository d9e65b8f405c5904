"""The plan that is guaranteed most among a few known ones, and when it is worth looking for."""

from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax import Status
from robust_rlhf_jax._iterate import worst_status
from robust_rlhf_jax.algorithms import safe_plan as module
from robust_rlhf_jax.algorithms.descent import DescentProblem, Evaluation, SubgradientDescent, descend
from robust_rlhf_jax.algorithms.possible_rewards import STANDARD_ERRORS, PossibleRewards
from robust_rlhf_jax.algorithms.safe_plan import GAINED, STEPS, UNCERTAIN, Certified, Planner, safe_plan
from robust_rlhf_jax.likelihood.confidence import ellipsoid
from robust_rlhf_jax.oracles import OracleResult

from .robust_policy_worlds import KEY, rewards_about


class Plans(eqx.Module):
    """The best of a few plans, each known by its expected features, as an objective."""

    features: jax.Array

    calls = 1
    memory = None

    def evaluate(self, theta, memory, *, key):
        worth = self.features @ theta
        best = jnp.argmax(worth)
        return Evaluation(worth[best], self.features[best], Status.CONVERGED.array())

    def solve(self, theta):
        """The plan's number as its policy."""
        worth = self.features @ theta
        best = jnp.argmax(worth)
        return SimpleNamespace(policy=best, value=worth[best], status=Status.CONVERGED.array())


def plan_among(plans, known, theta, radius=4.0, hiding=False):
    """`safe_plan` among plans of given features, at θ̂ = `theta` in columns of sizes 2 and ½."""
    sizes, theta = np.array([2.0, 0.5]), jnp.asarray(theta)
    possible = rewards_about(known, theta * sizes, sizes, radius)
    planner = SimpleNamespace(objective=lambda: Plans(jnp.asarray(plans)))
    return safe_plan(planner, possible, theta, hiding), possible


@pytest.mark.slow
def test_nothing_is_descended_for_where_the_data_know_enough(x64):
    """What is uncertain of the greedy plan is `UNCERTAIN` of its promise at most; twice that is not."""
    plans, theta = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1.0, 0.5])
    for share, calls in ((0.99, 1), (1.01, STEPS + 3)):
        known = (STANDARD_ERRORS / (2.0 * share * UNCERTAIN)) ** 2 * np.eye(2)
        found, _ = plan_among(plans, known, theta)
        assert found.calls == calls
        assert found.chosen.policy == 0
        assert not found.pessimistic
        np.testing.assert_array_equal(found.chosen.theta, theta)
        np.testing.assert_allclose([found.chosen.value, found.chosen.promised], 1.0)
        np.testing.assert_allclose(found.chosen.guaranteed, 1.0 - share * UNCERTAIN)
        assert found.chosen.status == Status.CONVERGED


@pytest.mark.slow
def test_where_lies_may_hide_the_safest_plan_is_returned(x64):
    """However little is uncertain, and however little it is guaranteed more."""
    plans, theta = np.array([[1.0, 0.0], [0.0, 0.999]]), np.array([1.0, 1.0])
    known = np.diag([(STANDARD_ERRORS / (2.0 * 0.01)) ** 2, 1e12])
    for hiding in (False, True):
        found, _ = plan_among(plans, known, theta, radius=20.0, hiding=hiding)
        assert found.pessimistic == hiding
        assert found.chosen.policy == int(hiding)
        assert found.calls == (STEPS + 3 if hiding else 1)


@pytest.mark.slow
def test_a_plan_that_promises_nothing_is_descended_from(x64):
    """It promises −1: uncertainty of next to nothing is more than none."""
    found, _ = plan_among(np.array([[-1.0, 0.0]]), 1e12 * np.eye(2), np.array([1.0, 0.0]))
    assert found.calls == STEPS + 3
    assert not found.pessimistic


@pytest.mark.slow
def test_the_behaviours_own_plan_leaves_nothing_uncertain(x64):
    """It gains nothing over the reference, by the estimate and for certain: greedy, and nothing is descended for."""
    found, _ = plan_among(np.zeros((1, 2)), np.eye(2), np.array([1.0, 0.5]))
    assert found.calls == 1
    assert not found.pessimistic
    assert found.chosen.guaranteed == found.chosen.promised == 0


@pytest.mark.slow
@pytest.mark.parametrize(("safe", "pessimistic"), [(0.0, False), (0.9 * GAINED, False), (1.1 * GAINED, True)])
def test_a_plan_is_traded_for_one_that_is_guaranteed_more(safe, pessimistic, x64):
    """The greedy plan promises 1 and is guaranteed 0; the second is certain of its `safe`, which is less."""
    certain, theta = 1e8, np.array([1.0, 1.0])
    spread = (STANDARD_ERRORS / 2.0) ** 2
    found, possible = plan_among(
        np.array([[1.0, 0.0], [0.0, safe]]), np.diag([spread, certain]), theta, radius=20.0
    )
    np.testing.assert_allclose(possible.guaranteed(jnp.asarray([1.0, 0.0])), 0.0, atol=1e-12)
    assert found.pessimistic == pessimistic
    assert found.chosen.policy == int(pessimistic)
    assert found.calls == STEPS + 3


@pytest.mark.slow
def test_the_better_of_the_last_and_the_best_iterates_plan_is_returned(monkeypatch, x64):
    """The descent's average or its best iterate, by what their plans are guaranteed; the average if equal."""
    plans, known = np.array([[1.0, 0.0], [0.0, 0.5], [0.0, -0.3]]), np.diag([1e-2, 1e8])
    ends = {1: np.array([-2.0, 1.0]), 2: np.array([-2.0, -1.0]), 3: np.array([-3.0, 1.0])}
    for last, best, chosen in ((1, 2, 1), (2, 1, 1), (1, 3, 1), (3, 1, 3)):
        seen = []

        def descended(problem, *, key, steps, solver, last=last, best=best, seen=seen):
            seen.append((problem, steps))
            sizes = np.array([2.0, 0.5])
            return SimpleNamespace(
                theta=jnp.asarray(ends[last] * sizes),
                best_theta=jnp.asarray(ends[best] * sizes),
                calls=jnp.asarray(7, jnp.int32),
                status=Status.MAX_STEPS.array(),
            )

        monkeypatch.setattr(module, "descend", descended)
        found, possible = plan_among(plans, known, np.array([1.0, 1.0]))
        problem, steps = seen[0]
        assert found.chosen.policy == 1
        np.testing.assert_allclose(found.chosen.theta, ends[chosen])
        assert found.calls == 10
        assert found.chosen.status == worst_status(Status.MAX_STEPS.array(), Status.CONVERGED.array())
        assert (steps, problem.fade) == (STEPS, STEPS)
        np.testing.assert_array_equal(problem.start, possible.set.centre)
        np.testing.assert_allclose(problem.step_size, 0.5 * possible.set.radius)


@pytest.mark.parametrize(("own", "gradient"), [(True, "oracle"), (False, "autodiff")])
def test_an_oracles_own_subgradient_is_preferred(own, gradient):
    class Sum(eqx.Module):
        def solve(self, prepared, theta):
            return OracleResult(jnp.sum(theta), theta, Status.CONVERGED.array(), theta if own else None)

    planner = Planner(Sum(), None, jnp.zeros(4), 2, False)
    assert planner.objective().gradient == gradient


@pytest.mark.slow
def test_the_best_iterate_has_the_best_certificate(x64):
    """min over the ellipsoid of θ·φ = θ̂·φ − 1.645‖φ‖ in the norm of the inverse information, for every plan tried."""
    rng = np.random.default_rng(1)
    features, root = 3 * rng.normal(size=(12, 3)), rng.normal(size=(3, 3))
    centre, known, sizes = rng.normal(size=3), root @ root.T, np.array([1.0, 2.0, 0.5])
    scaled = jnp.asarray(known / sizes / sizes[:, None])
    allowed = ellipsoid(scaled, jnp.asarray(centre * sizes), 1.645, 100.0)
    possible = PossibleRewards(allowed, jnp.asarray(sizes), jnp.linalg.cholesky(scaled), jnp.zeros((0, 3)))
    problem = DescentProblem(
        Certified(Plans(jnp.asarray(features)), possible), allowed, allowed.centre, jnp.asarray(2.0)
    )
    found = descend(problem, key=KEY, steps=30, solver=SubgradientDescent(history_length=30))
    spread = np.sqrt(np.sum(features * np.linalg.solve(known, features.T).T, axis=1))
    guaranteed = features @ centre - 1.645 * spread
    tried = np.argmax(features @ (np.asarray(found.history.theta) / sizes).T, axis=0)
    assert len(set(tried.tolist())) > 2
    np.testing.assert_allclose(found.best_value, -guaranteed[tried].max(), rtol=1e-9)
    chosen = np.argmax(features @ (np.asarray(found.best_theta) / sizes))
    assert guaranteed[chosen] == guaranteed[tried].max()
