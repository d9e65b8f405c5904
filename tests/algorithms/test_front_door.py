"""`robust_policy`: greedy where data cover everything, pessimistic where only suspects or nobody speak."""

import inspect
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from robust_rlhf_jax import Status, attacks, fit_reward, robust_policy, sample_preferences
from robust_rlhf_jax._iterate import worst_status
from robust_rlhf_jax.algorithms import front_door, standard
from robust_rlhf_jax.algorithms.descent import DescentProblem, Evaluation, SubgradientDescent, descend
from robust_rlhf_jax.algorithms.front_door import (
    CONFIDENCE,
    GAINED,
    LEAST_REACH,
    REACH,
    STANDARD_ERRORS,
    STEPS,
    UNCERTAIN,
    _Certified,
    _plan,
    _Planner,
    _Possible,
    _possible,
)
from robust_rlhf_jax.kernels.units import typical_entries
from robust_rlhf_jax.likelihood.confidence import ellipsoid
from robust_rlhf_jax.oracles import RLSVI, ExactOracle, OracleResult
from robust_rlhf_jax.rewards import RewardFit, fit_data
from robust_rlhf_jax.rewards.scarcity import secured
from robust_rlhf_jax.sweeps.families import PRESETS
from robust_rlhf_jax.worlds import normalised_gap

PAIRS = 3000
KEY = jax.random.key(7)


def world(family, seed=100):
    built = PRESETS["coverage"].families[family](jax.random.key(seed))
    data = sample_preferences(
        jax.random.key(seed + 1), built.mdp, PAIRS, behaviour=(built.behaviour, built.behaviour)
    )
    return built.mdp, data


def returned(mdp, solution):
    return 1.0 - float(normalised_gap(mdp, solution.policy))


@pytest.mark.parametrize(("pairs", "heeded"), [(0, False), (0.5, False), (1, True)])
def test_one_pair_left_out_is_evidence(monkeypatch, pairs, heeded):
    """Where nobody says ε: then disputed pairs and doubted directions count, and without it none."""
    _, data = world("uniform")
    plain = fit_data(data, jnp.float32(0.0))
    doubted = plain.doubted.at[0, 1].set(1.0)
    disputed = plain.undisputed.at[:3].set(0.0)
    share = jnp.float32(pairs / PAIRS)
    said = plain._replace(epsilon=share, undisputed=disputed, doubted=doubted)
    monkeypatch.setattr(front_door, "fit_data", lambda data, epsilon: said)
    found, remaining = front_door._fitted(data, None, jnp.float32(0.0))
    np.testing.assert_array_equal(found.undisputed, disputed if heeded else plain.weights)
    np.testing.assert_array_equal(found.doubted, doubted if heeded else 0.0 * doubted)
    assert remaining == share


@pytest.mark.parametrize(("told", "remaining"), [(0.3, 0.125), (0.2, 0.0), (0.1, 0.0)])
def test_what_the_table_shows_is_no_longer_among_what_may_be_corrupt(told, remaining, monkeypatch):
    """Of ε = .3, .2 are off the table: what is left of the lies is .1 of .8."""
    asked = []
    monkeypatch.setattr(front_door, "fit_data", lambda data, epsilon: asked.append(float(epsilon)))
    _, found = front_door._fitted(None, jnp.float32(told), jnp.float32(0.2))
    np.testing.assert_allclose(asked, [remaining], atol=1e-6)
    np.testing.assert_allclose(found, remaining, atol=1e-6)


@pytest.mark.parametrize(("found", "remaining"), [(0.3, 0.1), (0.2, 0.0), (0.1, 0.0)])
def test_unknown_corruption_is_what_is_found_beyond_the_table(found, remaining, monkeypatch):
    fit = fit_of(np.ones(4), epsilon=jnp.float32(found))
    monkeypatch.setattr(front_door, "fit_data", lambda data, epsilon: fit)
    data = SimpleNamespace(features=jnp.zeros(1), n_pairs=4000)
    _, share = front_door._fitted(data, None, jnp.float32(0.2))
    np.testing.assert_allclose(share, remaining, atol=1e-6)


def fit_of(weights, **fields):
    """A fit of which nothing else is asked."""
    known = {"weights": weights, "undisputed": weights, "doubted": jnp.zeros((2, 2))} | fields
    return RewardFit(**(dict.fromkeys(RewardFit._fields) | known))


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


@pytest.mark.parametrize(
    ("found", "told", "hiding"),
    [
        (0.3, 0.2, True), (1 / 400, 0.2, True), (0.3, 0.104, True),
        # As many are disputed as may lie.
        (0.3, 0.1, False), (0.3, 0.05, False),
        # No pair is left out: ε is a ceiling, and honest data pay nothing for it.
        (0.0, 0.2, False),
    ],
)  # fmt: skip
def test_lies_may_hide_where_some_were_found_and_fewer_are_disputed_than_may_lie(found, told, hiding):
    """Of 400 pairs 100 are off the table; of the rest .1 are disputed."""
    undisputed = jnp.asarray(np.repeat([0.0, 1.0], [130, 270]))
    fit = fit_of(jnp.ones(400), epsilon=jnp.float32(found), undisputed=undisputed)
    assert front_door._lies_may_hide(fit, jnp.float32(told), jnp.float32(0.25)) == hiding


def test_one_direction_is_as_wide_by_either_rule():
    np.testing.assert_allclose(STANDARD_ERRORS, np.sqrt(scipy.stats.chi2.ppf(CONFIDENCE, 1)), atol=5e-4)


def possible_rewards(known, centre, sizes, radius):
    """Θ about the scaled `centre`, `known` being the information of scaled θ."""
    known, centre = jnp.asarray(known), jnp.asarray(centre)
    factor = jnp.linalg.cholesky(known)
    return _Possible(ellipsoid(known, centre, STANDARD_ERRORS, radius), jnp.asarray(sizes), factor)


@pytest.mark.parametrize("radius", [50.0, 0.4])
def test_a_plan_is_guaranteed_what_it_promises_less_what_the_data_leave_open(radius, x64):
    """1.645 standard errors of φ, or the length of Θ's ball along it if that is less."""
    known, sizes = np.array([[4.0, 1.0], [1.0, 2.0]]), np.array([2.0, 0.5])
    centre, features = np.array([0.3, -0.2]), np.array([1.0, 3.0])
    possible = possible_rewards(known, centre, sizes, radius)
    scaled = features / sizes
    by_data = STANDARD_ERRORS * np.sqrt(scaled @ np.linalg.solve(known, scaled))
    by_ball = 2 * radius * np.linalg.norm(scaled)
    assert (by_data < by_ball) == (radius == 50.0)
    promised = centre @ scaled
    np.testing.assert_allclose(possible.uncertainty(features), min(by_data, by_ball), rtol=1e-9)
    np.testing.assert_allclose(possible.promised(features), promised, rtol=1e-9)
    np.testing.assert_allclose(possible.guaranteed(features), promised - min(by_data, by_ball), rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("hiding", [False, True])
def test_what_is_possible_in_units_of_the_columns(hiding, monkeypatch, x64):
    """θ·s with F/(s_i s_j) about it, as far as REACH times its length and LEAST_REACH; no direction is unbounded."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 2)) * [3.0, 0.1]
    sure = SimpleNamespace(theta=jnp.asarray([0.2, -5.0]), information=jnp.asarray([[40.0, 1.0], [1.0, 0.5]]))
    monkeypatch.setattr(front_door, "secured", lambda x, found, epsilon: sure)
    rank = 5
    width = np.sqrt(scipy.stats.chi2.ppf(CONFIDENCE, rank)) if hiding else STANDARD_ERRORS
    found = SimpleNamespace(rank=jnp.asarray(rank))
    possible = _possible(jnp.asarray(x), found, jnp.asarray(0.1), jnp.asarray(hiding))
    sizes = np.asarray(typical_entries(jnp.asarray(x)))
    np.testing.assert_allclose(possible.sizes, sizes)
    np.testing.assert_allclose(possible.set.centre, sure.theta * sizes, rtol=1e-12)
    radius = REACH * np.linalg.norm(sure.theta * sizes) + LEAST_REACH
    np.testing.assert_allclose(possible.set.radius, radius, rtol=1e-12)
    np.testing.assert_allclose(possible.set.size, width, rtol=0.01)
    known = np.asarray(sure.information) / np.outer(sizes, sizes)
    vectors = np.asarray(possible.set.eigenvectors)
    shape = (vectors * np.asarray(possible.set.eigenvalues)) @ vectors.T
    np.testing.assert_allclose(shape, known, rtol=1e-9)
    floored = known + (width / radius) ** 2 * np.eye(2)
    np.testing.assert_allclose(possible.factor @ possible.factor.T, floored, rtol=0.02)


def plan_among(plans, known, theta, radius=4.0, hiding=False):
    """`_plan` among plans of given features, at θ̂ = `theta` in columns of sizes 2 and ½."""
    sizes, theta = np.array([2.0, 0.5]), jnp.asarray(theta)
    possible = possible_rewards(known, theta * sizes, sizes, radius)
    planner = SimpleNamespace(objective=lambda: Plans(jnp.asarray(plans)))
    return _plan(planner, possible, theta, hiding), possible


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

        monkeypatch.setattr(front_door, "descend", descended)
        found, possible = plan_among(plans, known, np.array([1.0, 1.0]))
        problem, steps = seen[0]
        assert found.chosen.policy == 1
        np.testing.assert_allclose(found.chosen.theta, ends[chosen])
        assert found.calls == 10
        assert found.chosen.status == worst_status(Status.MAX_STEPS.array(), Status.CONVERGED.array())
        assert (steps, problem.fade) == (STEPS, STEPS)
        np.testing.assert_array_equal(problem.start, possible.set.centre)
        np.testing.assert_allclose(problem.step_size, 0.5 * possible.set.radius)


def test_keys_and_options_go_by_name():
    key, data, epsilon, *options = inspect.signature(robust_policy).parameters.values()
    assert [each.kind for each in (key, data, epsilon)] == [inspect.Parameter.POSITIONAL_OR_KEYWORD] * 3
    assert {each.kind for each in options} == {inspect.Parameter.KEYWORD_ONLY}
    kinds = inspect.signature(_Certified.evaluate).parameters
    assert kinds["key"].kind is inspect.Parameter.KEYWORD_ONLY


@pytest.mark.parametrize(("own", "gradient"), [(True, "oracle"), (False, "autodiff")])
def test_an_oracles_own_subgradient_is_preferred(own, gradient):
    class Sum(eqx.Module):
        def solve(self, prepared, theta):
            return OracleResult(jnp.sum(theta), theta, Status.CONVERGED.array(), theta if own else None)

    planner = _Planner(Sum(), None, jnp.zeros(4), 2, False)
    assert planner.objective().gradient == gradient


@pytest.mark.slow
def test_where_data_cover_everything_it_is_greedy():
    """On clean data and told ε: θ̂ of `fit_reward`, planned by the oracle as it is."""
    mdp, data = world("uniform")
    solution = robust_policy(KEY, data, 0.1)
    model = fit_reward(data, 0.1)
    np.testing.assert_array_equal(solution.theta, data.per_step(model.theta))
    assert not solution.diagnostics["pessimistic"]
    assert solution.diagnostics["epsilon"] == 0
    assert solution.diagnostics["oracle_calls"] == 1
    oracle = RLSVI()
    plan = jax.jit(lambda d, t: oracle.solve(oracle.prepare(d, jnp.float32(0.1), key=KEY), t).policy)
    np.testing.assert_array_equal(solution.policy, plan(data, solution.theta))
    assert returned(mdp, solution) > returned(mdp, standard(KEY, data, 0.0)) - 0.01


@pytest.mark.parametrize(
    "attack",
    ["praise_rare", *(pytest.param(a, marks=pytest.mark.slow) for a in ("push_on_table", "least_covered"))],
)
def test_lies_about_what_nobody_else_shows_do_not_lead_it_astray(attack):
    """Plain RLHF believes them and loses a quarter or more; the pessimist keeps .9 of the clean return."""
    mdp, data = world("condition_number")
    clean = returned(mdp, standard(KEY, data, 0.0))
    told = attacks.ATTACKS[attack](jax.random.key(3), data, 0.1, mdp)
    solution = robust_policy(KEY, told, 0.1)
    assert returned(mdp, standard(KEY, told, 0.1)) < 0.75 * clean
    assert returned(mdp, solution) > 0.9 * clean
    assert solution.diagnostics["pessimistic"]
    assert solution.diagnostics["guaranteed_gain"] <= solution.diagnostics["promised_gain"]
    # The greedy plan, sixty steps of the descent, and the plans at its average and at its best iterate.
    assert solution.diagnostics["oracle_calls"] == 63


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_noise_alone_does_not_make_it_pessimistic(seed):
    """A tabular grid of 48 directions, each covered, none well: the greedy plan loses .02, a set that holds all 48 at
    once .07–.15.
    """
    built = PRESETS["quick"].families["gridworld"](jax.random.key(seed))
    data = sample_preferences(
        jax.random.key(seed + 50), built.mdp, 4000, behaviour=(built.behaviour, built.behaviour)
    )
    plain = returned(built.mdp, standard(KEY, data, 0.0))
    for epsilon in (0.0, 0.1, None):
        assert returned(built.mdp, robust_policy(KEY, data, epsilon)) > plain - 0.02


@pytest.mark.slow
def test_without_evidence_it_answers_as_if_nobody_lied():
    """The clean chain on which a ceiling of a fifth casts doubt on decisive directions, at a price of .44."""
    built = PRESETS["quick"].families["chain"](jax.random.key(14))
    data = sample_preferences(
        jax.random.split(jax.random.key(1014), 3)[0],
        built.mdp,
        4000,
        behaviour=(built.behaviour, built.behaviour),
    )
    unknown, none = robust_policy(KEY, data), robust_policy(KEY, data, 0.0)
    np.testing.assert_array_equal(unknown.policy, none.policy)
    assert returned(built.mdp, unknown) > 0.99


@pytest.mark.slow
def test_planted_features_are_left_out_by_the_table():
    mdp, data = world("uniform")
    planted = attacks.push_features(jax.random.key(3), data, 0.2, mdp)
    solution = robust_policy(KEY, planted)
    np.testing.assert_allclose(solution.diagnostics["off_table"], 0.2, atol=1e-6)
    assert returned(mdp, solution) > 0.97


@pytest.mark.slow
def test_epsilon_none_and_batches(count_compilations):
    """Another ε compiles nothing; a batch over ε equals one by one; None decides from the evidence."""
    mdp, data = world("uniform")
    flipped = attacks.flip_confident(jax.random.key(3), data, 0.1, mdp)
    levels = np.asarray([0.05, 0.15], np.float32)
    one_by_one = [robust_policy(KEY, flipped, level) for level in levels]
    with count_compilations() as count:
        robust_policy(KEY, flipped, np.float32(0.12))
    assert not count.compiled
    batch = jax.vmap(lambda level: robust_policy(KEY, flipped, level))(jnp.asarray(levels))
    for i, alone in enumerate(one_by_one):
        np.testing.assert_allclose(batch.theta[i], alone.theta, rtol=2e-2, atol=2e-2)
        assert batch.status[i] == alone.status
    unknown = robust_policy(KEY, flipped)
    assert 0.05 < unknown.diagnostics["epsilon"] < 0.2
    assert returned(mdp, unknown) > 0.95


@pytest.mark.slow
def test_an_oracle_with_subgradients():
    mdp, data = world("condition_number")
    solution = robust_policy(KEY, data, 0.05, oracle=ExactOracle(mdp))
    assert Status(int(solution.status)) == Status.CONVERGED
    assert returned(mdp, solution) > 0.95 * returned(mdp, standard(KEY, data, 0.0, oracle=ExactOracle(mdp)))


@pytest.mark.slow
def test_the_set_of_rewards_holds_the_true_one_and_knows_nothing_of_unseen_directions():
    mdp, data = world("uniform")
    found = fit_data(data, jnp.float32(0.1))
    possible = _possible(data.differences(), found, jnp.float32(0.1), jnp.asarray(False))
    # Up to the per-step shift that no comparison shows.
    x = data.differences()
    values, vectors = np.linalg.eigh(np.asarray(x.T @ x) / PAIRS)
    seen = vectors[:, values > 1e-4 * values[-1]]
    gap = seen @ (seen.T @ (np.asarray(mdp.theta).reshape(-1) - np.asarray(found.theta)))
    known = np.asarray(secured(x, found, jnp.float32(0.1)).information)
    assert gap @ known @ gap < scipy.stats.chi2.ppf(0.99, int(found.rank))
    # Along one direction: 1.645 standard errors, here seen directions at random.
    directions = np.random.default_rng(0).standard_normal((500, seen.shape[1])) @ seen.T
    missed = np.mean([abs(gap @ d) > float(possible.uncertainty(jnp.asarray(d))) for d in directions])
    assert 0.0 < missed < 0.3
    # Nothing is believed to be longer than three times the estimate and 1.
    length = np.linalg.norm(np.asarray(found.theta) * np.asarray(possible.sizes))
    np.testing.assert_allclose(possible.set.radius, 3.0 * length + 1.0, rtol=1e-3)
    unseen = jnp.asarray(vectors[:, values <= 1e-4 * values[-1]][:, 0])
    assert possible.uncertainty(unseen) > 5 * possible.uncertainty(jnp.asarray(vectors[:, -1]))


@pytest.mark.slow
def test_the_best_iterate_has_the_best_certificate(x64):
    """min over the ellipsoid of θ·φ = θ̂·φ − 1.645‖φ‖ in the norm of the inverse information, for every plan tried."""
    rng = np.random.default_rng(1)
    features, root = 3 * rng.normal(size=(12, 3)), rng.normal(size=(3, 3))
    centre, known, sizes = rng.normal(size=3), root @ root.T, np.array([1.0, 2.0, 0.5])
    scaled = jnp.asarray(known / sizes / sizes[:, None])
    allowed = ellipsoid(scaled, jnp.asarray(centre * sizes), 1.645, 100.0)
    possible = _Possible(allowed, jnp.asarray(sizes), jnp.linalg.cholesky(scaled))
    problem = DescentProblem(
        _Certified(Plans(jnp.asarray(features)), possible), allowed, allowed.centre, jnp.asarray(2.0)
    )
    found = descend(problem, key=KEY, steps=30, solver=SubgradientDescent(history_length=30))
    spread = np.sqrt(np.sum(features * np.linalg.solve(known, features.T).T, axis=1))
    guaranteed = features @ centre - 1.645 * spread
    tried = np.argmax(features @ (np.asarray(found.history.theta) / sizes).T, axis=0)
    assert len(set(tried.tolist())) > 2
    np.testing.assert_allclose(found.best_value, -guaranteed[tried].max(), rtol=1e-9)
    chosen = np.argmax(features @ (np.asarray(found.best_theta) / sizes))
    assert guaranteed[chosen] == guaranteed[tried].max()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0.5}, r"epsilon=0.5 is outside \[0, 0.5\)"),
        ({"reference": np.zeros((2, 2))}, "reference has shape"),
    ],
)
def test_bad_input(change, message):
    _, data = world("uniform")
    with pytest.raises(ValueError, match=message):
        robust_policy(KEY, data, **{"epsilon": 0.1, **change})


def test_a_label_of_zero_is_refused():
    _, data = world("uniform")
    with pytest.raises(ValueError, match="every label must be"):
        robust_policy(KEY, data.replace_pairs(lambda a: a * 0 if a.ndim == 1 else a), 0.1)
