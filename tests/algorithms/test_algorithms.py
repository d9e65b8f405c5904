"""What every algorithm promises, and what Algorithm 1 gains over plain RLHF on corrupted data."""

import dataclasses
import inspect
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from representatives import REPRESENTATIVES
from slow_parameters import slow_but_few

from robust_rlhf_jax import Solution, Status, sample_preferences
from robust_rlhf_jax.algorithms import (
    ConditionNumberConfig,
    DescentConfig,
    FirstOrderConfig,
    PessimisticMLEConfig,
    Smoothing,
    StandardConfig,
    UniformCoverageConfig,
    condition_number,
    first_order,
    pessimistic_mle,
    standard,
    uniform_coverage,
)
from robust_rlhf_jax.lab.attacks import push_features
from robust_rlhf_jax.lab.rivals import RIVALS
from robust_rlhf_jax.lab.worlds import random_linear_mdp
from robust_rlhf_jax.mdp import LinearMDP, SoftmaxMixture, normalised_gap
from robust_rlhf_jax.oracles import ExactOracle, PrimalDual

SHORT = {
    gradient: DescentConfig(gradient=gradient, steps=4, smoothing=Smoothing(n_directions=4, chunk=4))
    for gradient in ("zero_order", "autodiff")
}
ALGORITHMS = {
    "standard": standard,
    "uniform_coverage": uniform_coverage,
    "condition_number": partial(condition_number, config=ConditionNumberConfig(descent=SHORT["zero_order"])),
    "condition_number_autodiff": partial(
        condition_number, config=ConditionNumberConfig(descent=SHORT["autodiff"])
    ),
    "first_order": partial(
        first_order,
        oracle=PrimalDual(steps=20, refresh=10),
        config=FirstOrderConfig(
            descent=DescentConfig(gradient="oracle", steps=4, warm_start=True),
            warm_steps=10,
            polish_steps=2,
            polish_warm_steps=20,
        ),
    ),
    "pessimistic_mle": partial(pessimistic_mle, config=PessimisticMLEConfig(descent=SHORT["autodiff"])),
    "pessimistic_mle_linear": partial(
        pessimistic_mle, config=PessimisticMLEConfig(penalty="linear", descent=SHORT["autodiff"])
    ),
    **RIVALS,
}
# Those whose answer depends on the key: they split the data at random.
SPLITTING = {"uniform_coverage", "condition_number", "condition_number_autodiff", "first_order"}
PESSIMISTIC = {
    "objective",
    "best_objective",
    "oracle_calls",
    "projection_solves",
    "theta_estimate",
    "reward_status",
    "descent_status",
    "oracle_status",
    "zeta",
    "rank",
}
DIAGNOSTICS = {
    "condition_number": PESSIMISTIC | {"removed_mass", "off_table"},
    "condition_number_autodiff": PESSIMISTIC | {"removed_mass", "off_table"},
    "first_order": PESSIMISTIC | {"removed_mass", "off_table"},
    "pessimistic_mle": PESSIMISTIC,
    "pessimistic_mle_linear": PESSIMISTIC,
    "standard": {"rank", "log_likelihood", "gradient_norm", "reward_status", "oracle_status"},
    "uniform_coverage": {
        "rank",
        "trimmed_log_likelihood",
        "gradient_norm",
        "rounds",
        "removed_mass",
        "off_table",
        "reward_status",
        "oracle_status",
    },
    **{name: {"removed_mass", "reward_status", "oracle_status"} for name in RIVALS},
}
names = pytest.mark.parametrize("name", ALGORITHMS)
# Half a minute of compilation, and its batch is tested with a bad lane in test_pessimism.py.
SLOW_TO_COMPILE = {"condition_number_autodiff"}
# Two programs of ten seconds each; `pessimistic_mle` shares their descent.
SLOW_PROTOCOL = {
    "confident_learning",
    "pessimistic_mle",
    "uniform_coverage",
    "condition_number",
    "first_order",
    "pessimistic_mle_linear",
}
# One function plans for all rivals.
PLANNED_ALIKE = RIVALS.keys() - set(REPRESENTATIVES)


@pytest.fixture(scope="module")
def world(make_mdp):
    """(mdp, data, key), float32."""
    mdp = make_mdp()
    return mdp, sample_preferences(jax.random.key(0), mdp, 300), jax.random.key(2)


def probabilities(policy):
    """[H, S, A]; of a mixture, the mean of its members' probabilities."""
    return policy.mean_over(lambda p: p) if isinstance(policy, SoftmaxMixture) else policy


def check_solution(name, solution, data):
    shape = (data.horizon, *data.state_features.shape[:2])
    assert isinstance(solution, Solution)
    policy = probabilities(solution.policy)
    assert policy.shape == shape
    assert (np.asarray(policy) >= 0).all()
    np.testing.assert_allclose(np.sum(policy, axis=-1), 1.0, rtol=1e-6)
    assert solution.theta.shape == (data.horizon, data.reward_dim)
    assert np.linalg.norm(data.flat(solution.theta)) <= np.sqrt(data.theta_dim) * (1 + 1e-5)
    assert solution.value.shape == solution.status.shape == ()
    assert np.isfinite(solution.value)
    assert solution.status.dtype == jnp.int32
    assert set(solution.diagnostics) == DIAGNOSTICS[name]
    for share in ("removed_mass", "off_table"):
        assert -1e-6 <= solution.diagnostics.get(share, 0.0) < 1
    assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(solution))


@pytest.mark.parametrize(
    "name",
    slow_but_few(
        sorted(ALGORITHMS.keys() - SLOW_TO_COMPILE - PLANNED_ALIKE), slow=SLOW_PROTOCOL.__contains__
    ),
)
def test_protocol(name, x64, make_mdp, count_compilations):
    """Fields, keys, values of every kind without a second compilation, and the batch over (key, ε).

    In double precision: a filter has thresholds, at which single-precision rounding may take another row.
    """
    mdp = make_mdp()
    data, other = (sample_preferences(jax.random.key(seed), mdp, 300) for seed in (0, 1))
    keys = list(jax.random.split(jax.random.key(2), 3))
    algorithm = ALGORITHMS[name]
    epsilons = [0.0, 0.1, 0.2]
    first = algorithm(keys[0], data, epsilons[0])
    check_solution(name, first, data)
    # Twenty iterations of a game are not enough for it to converge.
    assert first.status == (Status.MAX_STEPS if name == "first_order" else Status.CONVERGED)
    assert name in RIVALS or first.diagnostics["rank"] == mdp.horizon * (mdp.dim - 1)
    with count_compilations() as count:
        solutions = [first] + [algorithm(k, data, e) for k, e in zip(keys[1:], epsilons[1:], strict=True)]
        again = algorithm(keys[0], data, 0.0)
        fresh = algorithm(keys[0], other, np.float64(0.25))
    assert count.compiled == []
    for old, new in zip(jax.tree.leaves(first), jax.tree.leaves(again), strict=True):
        np.testing.assert_array_equal(old, new)
    assert not np.array_equal(fresh.theta, first.theta)
    other_key = algorithm(keys[1], data, 0.0)
    assert np.array_equal(other_key.theta, first.theta) == (name not in SPLITTING)

    batch = jax.vmap(lambda k, e: algorithm(k, data, e))(jnp.stack(keys), jnp.asarray(epsilons))
    policies = jax.vmap(probabilities)(batch.policy)
    for i, solution in enumerate(solutions):
        np.testing.assert_allclose(batch.theta[i], solution.theta, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(batch.value[i], solution.value, rtol=1e-6, atol=1e-6)
        assert batch.status[i] == solution.status
        np.testing.assert_allclose(policies[i], probabilities(solution.policy), atol=1e-6)


def damage(array, index, value):
    """A NumPy copy with one entry changed."""
    copy = np.array(array)
    copy[index] = value
    return copy


BAD = {
    "nan feature": (
        lambda d: {"features": damage(d.features, (3, 0, 1, 2), np.nan)},
        0.1,
        r"features\[3, 0, 1, 2\]",
    ),
    "nan table": (lambda d: {"state_features": damage(d.state_features, 0, np.nan)}, 0.1, "state_features"),
    "labels 0/1": (lambda d: {"labels": (np.asarray(d.labels) + 1) / 2}, 0.1, "map 0 to -1"),
    "nan label": (lambda d: {"labels": damage(d.labels, 0, np.nan)}, 0.1, r"labels\[0\]"),
    "identical pairs": (
        lambda d: {"features": np.stack([np.asarray(d.features)[:, 0]] * 2, axis=1)},
        0.1,
        "no direction of theta",
    ),
    "unknown state": (lambda d: {"states": damage(d.states, 0, 6)}, 0.1, "indices run from 0 to 5"),
    "wrong shape": (lambda d: {"labels": np.asarray(d.labels)[:-1]}, 0.1, "labels has shape"),
    "half": (lambda d: {}, 0.5, r"epsilon=0\.5 is outside"),
    "negative": (lambda d: {}, -0.1, r"epsilon=-0\.1 is outside"),
    "nan epsilon": (lambda d: {}, float("nan"), "epsilon=nan is outside"),
    "words": (lambda d: {}, "much", "is not a number"),
}


@names
@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named_in_one_sentence(name, case, world):
    _, data, key = world
    change, epsilon, message = BAD[case]
    with pytest.raises(ValueError, match=message) as error:
        ALGORITHMS[name](key, dataclasses.replace(data, **change(data)), epsilon)
    text = str(error.value)
    assert text.endswith(".")
    assert "\n" not in text
    assert ". " not in text.rstrip(".").replace("e.g. ", ""), "one sentence"


@pytest.mark.parametrize("algorithm", [standard, uniform_coverage, condition_number, pessimistic_mle])
def test_options_go_by_name(algorithm):
    key, data, epsilon, *options = inspect.signature(algorithm).parameters.values()
    assert [each.kind for each in (key, data, epsilon)] == [inspect.Parameter.POSITIONAL_OR_KEYWORD] * 3
    assert {each.kind for each in options} == {inspect.Parameter.KEYWORD_ONLY}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["standard", "uniform_coverage", "pessimistic_mle", "pessimistic_mle_linear"]
)
def test_rewards_without_a_length_of_their_own_are_as_long_as_the_paper_allows(name, world):
    """Labels that follow θ★ without exception fit the better the longer θ is: √(Hd) it is, or the radius asked for."""
    mdp, data, key = world
    labels = jnp.where(data.differences() @ data.flat(mdp.theta) > 0, 1.0, -1.0)
    found = ALGORITHMS[name](key, dataclasses.replace(data, labels=labels), 0.0)
    theta = found.diagnostics.get("theta_estimate", found.theta)
    np.testing.assert_allclose(np.linalg.norm(theta), np.sqrt(12), rtol=1e-4)


def test_too_few_pairs_to_split(world):
    _, data, key = world
    with pytest.raises(ValueError, match="2 pairs cannot be split in 3 parts"):
        uniform_coverage(key, data.take(jnp.arange(2)), 0.1)


@pytest.mark.slow
def test_oracle_and_configuration_are_used(world):
    """With all data for every stage and ε = 0 Algorithm 1 is plain RLHF; the exact oracle gives V★(θ̂)."""
    mdp, data, key = world
    configs = {
        "standard": StandardConfig(radius=0.5),
        "uniform_coverage": UniformCoverageConfig(reuse_data=True, robust_start=False, radius=0.5),
    }
    oracle = ExactOracle(mdp)
    found = {
        name: ALGORITHMS[name](key, data, 0.0, oracle=oracle, config=config)
        for name, config in configs.items()
    }
    plain, robust = found["standard"], found["uniform_coverage"]
    for solution in (plain, robust):
        np.testing.assert_allclose(np.linalg.norm(solution.theta), 0.5, rtol=1e-4)
        exact = oracle.solve(mdp, solution.theta)
        np.testing.assert_allclose(solution.value, exact.value, rtol=1e-5)
        np.testing.assert_array_equal(solution.policy, exact.policy)
    np.testing.assert_allclose(robust.theta, plain.theta, atol=1e-3)
    np.testing.assert_allclose(
        robust.diagnostics["trimmed_log_likelihood"], plain.diagnostics["log_likelihood"], rtol=1e-5
    )
    np.testing.assert_allclose(robust.diagnostics["removed_mass"], 0.0, atol=1e-6)


@pytest.mark.slow
def test_planted_pairs_ruin_plain_rlhf_and_not_algorithm_1():
    """A tenth of 20,000 pairs replaced by evidence against θ★, found by the filter alone."""
    mdp = jax.jit(lambda k: random_linear_mdp(k, n_states=60, n_actions=4, dim=6, horizon=5))(
        jax.random.key(0)
    )
    damage, filters = (
        jax.jit(lambda k, d: push_features(k, d, 0.1, mdp)),
        UniformCoverageConfig(ask_table=False),
    )
    for seed in range(3):
        k_data, k_attack, k_run = jax.random.split(jax.random.key(seed), 3)
        clean = sample_preferences(k_data, mdp, 20_000)
        corrupted = damage(k_attack, clean)
        robust, plain = (
            uniform_coverage(k_run, corrupted, 0.1, config=filters),
            standard(k_run, corrupted, 0.1),
        )
        assert normalised_gap(mdp, robust.policy) <= 0.05
        assert normalised_gap(mdp, plain.policy) >= 0.2
        assert normalised_gap(mdp, standard(k_run, clean, 0.0).policy) <= 0.02
        # D₂ is a third of the data, so that its planted share is a tenth up to sampling.
        assert 0.09 <= robust.diagnostics["removed_mass"] <= 0.2 * (1 + 1e-3)
        assert robust.diagnostics["rank"] == 5 * 5
        assert robust.diagnostics["reward_status"] == Status.CONVERGED


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "stationary"),
    [("standard", False), ("uniform_coverage", True)],
)
def test_reward_features_of_their_own(name, stationary, make_mdp):
    """p = 2 reward features beside d = 4 transition features, one θ per step or one for all."""
    rng = np.random.default_rng(5)
    base = make_mdp()
    table = jnp.asarray(rng.uniform(-0.7, 0.7, size=(6, 3, 2)), jnp.float32)
    theta = np.broadcast_to([1.2, -0.7], (3, 2)) if stationary else rng.normal(size=(3, 2))
    mdp = LinearMDP(
        base.features,
        base.transition_measures,
        jnp.asarray(theta, jnp.float32),
        base.initial_distribution,
        table,
    )
    data = dataclasses.replace(sample_preferences(jax.random.key(0), mdp, 3000), stationary=stationary)
    solution = ALGORITHMS[name](jax.random.key(1), data, 0.02)
    check_solution(name, solution, data)
    assert solution.diagnostics["rank"] == (2 if stationary else 6)
    if stationary:
        np.testing.assert_array_equal(solution.theta, np.broadcast_to(solution.theta[0], (3, 2)))
    assert normalised_gap(mdp, solution.policy) < 0.02
