import re
from decimal import Decimal
from fractions import Fraction
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax import (
    Pairs,
    algorithms,
    attacks,
    audit,
    check_preferences,
    fit_reward,
    preferences_from_features,
    preferences_from_options,
    random_split,
    rivals,
    robust_policy,
    sample_preferences,
    sample_segments,
    worlds,
)
from robust_rlhf_jax.checks import (
    are_chances,
    check_epsilon,
    check_epsilons,
    check_key,
    check_labels,
    check_positive,
    is_traced,
)
from robust_rlhf_jax.lab.diagnostics import label_lower_bound
from robust_rlhf_jax.lab.pessimistic_median import pessimistic_median
from robust_rlhf_jax.likelihood import trimmed_mle
from robust_rlhf_jax.mdp import rollout
from robust_rlhf_jax.rewards import fit_differences
from robust_rlhf_jax.rewards.filter_and_trim import robust_reward
from robust_rlhf_jax.rewards.registry import REWARD_ESTIMATORS


@pytest.mark.parametrize(
    "epsilon",
    [0, 0.0, 0.1, 0.4999999, np.float32(0.25), np.array(0.3), np.array([0.0, 0.49]), jnp.asarray([0.1, 0.2])],
)
def test_fractions_below_one_half_pass(epsilon):
    assert check_epsilons(epsilon) is None
    if np.ndim(epsilon) == 0:
        assert check_epsilon(epsilon) is None


@pytest.mark.parametrize("epsilon", [np.array([0.1, 0.2]), [0.1], jnp.asarray([[0.1]])])
def test_where_one_share_is_meant_an_array_is_refused(epsilon):
    with pytest.raises(ValueError, match=r"an array of shape .* is not a number: give one fraction"):
        check_epsilon(epsilon)
    with pytest.raises(ValueError, match="is not a number"):
        jax.jit(check_epsilon)(jnp.asarray(epsilon))


@pytest.mark.parametrize(
    ("epsilon", "named"),
    [
        (0.5, "0.5"),
        (1, "1"),
        (-1e-9, "-1e-09"),
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (-float("inf"), "-inf"),
        (np.array([0.1, 0.7, 0.9]), "0.7"),
        (jnp.asarray([[0.1], [-0.25]]), "-0.25"),
    ],
)
def test_other_numbers_are_named(epsilon, named):
    with pytest.raises(ValueError, match=r"outside \[0, 0\.5\)") as error:
        check_epsilons(epsilon)
    assert str(error.value).startswith(f"epsilon={named} ")
    assert str(error.value).endswith(".")


@pytest.mark.parametrize(
    "epsilon", ["much", "0.1", b"0.1", [0.1, "x"], [0.1, [0.2]], {}, False, np.True_, None]
)
def test_what_is_no_number_is_named(epsilon):
    with pytest.raises(ValueError, match="is not a number"):
        check_epsilon(epsilon)
    with pytest.raises(ValueError, match="is not a number"):
        check_epsilons(epsilon)


def test_traced_values_are_skipped():
    seen = []

    def body(epsilon):
        seen.append(is_traced(epsilon))
        check_epsilon(epsilon)
        return epsilon

    jax.jit(body)(0.9)
    jax.vmap(body)(jnp.array([0.1, 0.9]))
    jax.grad(body)(0.9)
    assert seen == [True] * 3
    assert not is_traced(0.9)
    assert not is_traced(jnp.asarray(0.9))


@pytest.mark.parametrize("labels", [np.array([1, -1]), jnp.ones(3), -np.ones((2, 2)), np.zeros(0)])
def test_labels_of_plus_and_minus_one_pass(labels):
    assert check_labels(labels) is None


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.array([1, 0, 1]), r"labels\[1\] is 0: every label must be \+1 or -1 \(labels look like 0/1"),
        (np.array([1.0, -1.0, 2.0]), r"labels\[2\] is 2.0: .*trajectory 1 is preferred"),
        (np.array([1.0, -1.0, 0.0]), r"labels\[2\] is 0.0: .*\(a 0 looks like a tie: leave ties out"),
        (np.array([np.nan]), r"labels\[0\] is nan"),
        (np.array([[1.0, 0.5]]), r"labels\[0, 1\] is 0.5"),
        (jnp.array([1.0, 0.1], jnp.float32), r"labels\[1\] is 0.1:"),
    ],
)
def test_other_labels_are_named(labels, message):
    with pytest.raises(ValueError, match=message):
        check_labels(labels)


@pytest.mark.parametrize(
    ("labels", "named"),
    [
        (["a", "b"], "'a'"),
        (np.array(["1", "-1"]), "'1'"),
        (np.array([1, "-1"], object), "'-1'"),
        (np.array([1, None], object), "None"),
        (np.array([1, 1j], object), "1j"),
        (np.array([(1,), (-1,)], [("label", int)]), r"\(1,\)"),
    ],
)
def test_the_first_label_that_is_no_number_is_named(labels, named):
    with pytest.raises(ValueError, match=f"^labels holds {named}: every label must be the number"):
        check_labels(labels)


@pytest.mark.parametrize(
    "one", [True, np.True_, np.int8(1), np.array(1), jnp.asarray(1), Fraction(1), Decimal(1)]
)
def test_numbers_of_any_kind_in_an_array_of_objects_pass(one):
    labels = np.empty(2, object)
    labels[:] = [one, -1]
    check_labels(labels)


def test_traced_labels_pass():
    jax.jit(lambda labels: check_labels(labels) or labels)(jnp.zeros(2))


@pytest.mark.parametrize(
    ("value", "or_zero", "sentence"),
    [
        (0.1, False, None),
        (jnp.float32(3.0), False, None),
        (0, True, None),
        (0, False, "rate=0 must be positive and finite."),
        (-1.5, True, "rate=-1.5 must be at least 0 and finite."),
        (float("inf"), False, "rate=inf must be positive and finite."),
        (float("nan"), True, "rate=nan must be at least 0 and finite."),
        (np.array([1.0, 2.0]), False, "rate is an array of shape (2,): give one number."),
        ([], True, "rate is an array of shape (0,): give one number."),
    ],
)
def test_rates_that_are_not_positive_are_named(value, or_zero, sentence):
    if sentence is None:
        check_positive(value, "rate", or_zero)
    else:
        with pytest.raises(ValueError, match=re.escape(sentence)):
            check_positive(value, "rate", or_zero)


def test_every_reward_estimator_refuses_labels_0_and_1():
    x, labels = jnp.eye(4), jnp.asarray([0.0, 1.0, 1.0, 0.0])
    fits = [lambda x, o, e, f=f: f(x, o, e, radius=1.0) for f in REWARD_ESTIMATORS.values()]
    robust = lambda x, o, e: robust_reward(x, x, o, e, radius=1.0)  # noqa: E731
    for fit in [*fits, robust, fit_differences]:
        # Traced with labels that are known: nothing is compiled on the way to the check.
        with pytest.raises(ValueError, match="labels look like 0/1"):
            jax.eval_shape(lambda x, fit=fit: fit(x, labels, jnp.asarray(0.1)), x)


@pytest.mark.parametrize(
    ("values", "are"),
    [
        ([0.25, 0.75], True),
        ([[0.3, 0.7], [1.0, 0.0]], True),
        ([-5e-5, 1.0], True),
        ([-2e-4, 1.0002], False),
        ([0.3, 0.6], False),
        ([[0.3, 0.7], [0.3, 0.3]], False),
        ([np.nan, 1.0], False),
    ],
)
def test_chances_are_not_negative_and_sum_to_one_but_for_rounding(values, are):
    assert are_chances(np.array(values)) is are


@pytest.mark.parametrize("key", [jax.random.key(0), jax.random.PRNGKey(0), np.asarray(jax.random.PRNGKey(0))])
def test_keys_of_either_kind_pass_traced_or_not(key):
    assert check_key(key) is None
    jax.jit(check_key)(key)
    jax.vmap(check_key)(key[None])


@pytest.mark.parametrize("seed", [0, "0", None, 1.5, np.int64(3), jnp.zeros(2), np.random.default_rng(0)])
def test_what_is_no_key_is_named(seed):
    with pytest.raises(ValueError, match=r"^key=.* is no key of JAX: give jax\.random\.key\(seed\)"):
        check_key(seed)


@pytest.mark.parametrize(
    "keys", [jax.random.split(jax.random.key(0)), jax.random.split(jax.random.PRNGKey(0))]
)
def test_several_keys_are_refused(keys):
    with pytest.raises(ValueError, match=r"^key has shape \(2.*, where one key has"):
        check_key(keys)


def test_a_seed_in_the_place_of_a_key_is_refused_where_a_key_is_asked_for():
    mdp = worlds.chain_mdp()
    data = sample_preferences(jax.random.key(0), mdp, 20)
    x, labels = data.differences(), data.labels
    asked = [
        lambda key: audit.audit(key, data, 0.1),
        lambda key: random_split(key, data, 2),
        lambda key: sample_preferences(key, mdp, 20),
        lambda key: sample_segments(key, mdp, 20, 2),
        lambda key: trimmed_mle(x, labels, 0.1, radius=1.0, key=key),
        lambda key: rivals.fit_then_plan(key, data, 0.1, estimator="cdpo"),
        lambda key: pessimistic_median(key, data, np.arange(20) % 2),
        lambda key: label_lower_bound(mdp, x, 0.1, key=key),
        lambda key: rollout(key, mdp, worlds.uniform_policy(mdp), 5),
        lambda key: attacks.compose(attacks.flip_random)(key, data, 0.1, mdp),
        *(partial(attack, data=data, epsilon=0.1, mdp=mdp) for attack in attacks.ATTACKS.values()),
        lambda key: worlds.random_linear_mdp(key, n_states=3, n_actions=2, dim=2, horizon=2),
        lambda key: worlds.grid_walls(key, 6),
        worlds.delivery_grid,
        worlds.delivery_map,
        worlds.gridworld,
        worlds.hard_instance,
        worlds.partial_coverage_mdp,
        *(
            partial(plan, data=data, epsilon=0.1)
            for plan in (
                robust_policy,
                algorithms.condition_number,
                algorithms.first_order,
                algorithms.pessimistic_mle,
                algorithms.standard,
                algorithms.uniform_coverage,
            )
        ),
    ]
    for ask in asked:
        with pytest.raises(ValueError, match=r"^key='0' is no key of JAX"):
            ask("0")


C, R = np.arange(8.0, dtype=np.float32).reshape(4, 2), np.ones((4, 2), np.float32)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda traced: fit_reward(Pairs(C, R), groups=traced).theta, "groups"),
        (lambda traced: fit_reward(Pairs(C, R, groups=traced)).theta, "groups"),
        (lambda traced: fit_reward(Pairs(C, R, raters=traced)).theta, "raters"),
        (lambda traced: fit_reward(Pairs(C, R, strength=traced)).theta, "strength"),
        (lambda traced: fit_reward(Pairs(C, R, weights=traced)).theta, "weights"),
        (lambda traced: check_preferences(Pairs(C, R, weights=traced)), "weights"),
        (lambda traced: preferences_from_options(C, R, traced), "labels"),
        (lambda traced: preferences_from_options(C * traced[0], R, np.ones(4)), "option0"),
        (lambda traced: preferences_from_features(C, R, traced), "labels"),
    ],
)
def test_traced_values_that_are_needed_are_named(call, name):
    with pytest.raises(ValueError, match=f"^the values of {name} are needed here, and jax.jit, jax.vmap"):
        jax.jit(call)(jnp.ones(4))
