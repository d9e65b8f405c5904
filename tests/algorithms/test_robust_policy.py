"""`robust_policy`: greedy where data cover everything, pessimistic where only suspects or nobody speak."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax import Status, attacks, fit_reward, robust_policy, sample_preferences
from robust_rlhf_jax.algorithms import standard
from robust_rlhf_jax.algorithms.safe_plan import Certified
from robust_rlhf_jax.lab.sweeps.families import PRESETS
from robust_rlhf_jax.mdp import normalised_gap
from robust_rlhf_jax.oracles import RLSVI, ExactOracle

from .robust_policy_worlds import KEY, world


def returned(mdp, solution):
    return 1.0 - float(normalised_gap(mdp, solution.policy))


def test_keys_and_options_go_by_name():
    key, data, epsilon, *options = inspect.signature(robust_policy).parameters.values()
    assert [each.kind for each in (key, data, epsilon)] == [inspect.Parameter.POSITIONAL_OR_KEYWORD] * 3
    assert {each.kind for each in options} == {inspect.Parameter.KEYWORD_ONLY}
    kinds = inspect.signature(Certified.evaluate).parameters
    assert kinds["key"].kind is inspect.Parameter.KEYWORD_ONLY


@pytest.mark.slow
def test_where_data_cover_everything_it_is_greedy():
    """On clean data and told ε: θ̂ of `fit_reward`, planned by the oracle as it is."""
    mdp, data = world("uniform")
    solution = robust_policy(KEY, data, 0.1)
    model = fit_reward(data, 0.1)
    # Outside of jit a fit fills up its rows, and sums are rounded otherwise.
    np.testing.assert_allclose(solution.theta, data.per_step(model.theta), rtol=1e-4, atol=1e-5)
    assert not solution.diagnostics["pessimistic"]
    assert solution.diagnostics["epsilon"] == 0
    assert solution.diagnostics["oracle_calls"] == 1
    oracle = RLSVI()
    plan = jax.jit(lambda d, t: oracle.solve(oracle.prepare(d, jnp.float32(0.1), key=KEY), t).policy)
    np.testing.assert_array_equal(solution.policy, plan(data, solution.theta))
    assert returned(mdp, solution) > returned(mdp, standard(KEY, data, 0.0)) - 0.01


@pytest.mark.slow
@pytest.mark.parametrize("attack", ["praise_rare", "push_on_table", "least_covered"])
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
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0.5}, r"epsilon=0.5 is outside \[0, 0.5\)"),
        ({"epsilon": np.array([0.1, 0.2])}, "an array of shape"),
        ({"reference": np.zeros((2, 2))}, "reference has shape"),
        ({"oracle": RLSVI}, "oracle=RLSVI is a class"),
    ],
)
def test_bad_input(change, message):
    _, data = world("uniform")
    with pytest.raises(ValueError, match=message):
        robust_policy(KEY, data, **{"epsilon": 0.1, **change})


@pytest.mark.slow
def test_a_label_of_zero_is_refused():
    _, data = world("uniform")
    with pytest.raises(ValueError, match="every label must be"):
        robust_policy(KEY, data.replace_pairs(lambda a: a * 0 if a.ndim == 1 else a), 0.1)
