import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.checks import (
    are_chances,
    check_epsilon,
    check_epsilons,
    check_labels,
    check_positive,
    is_traced,
)
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


@pytest.mark.parametrize("epsilon", ["much", "0.1", b"0.1", [0.1, "x"], [0.1, [0.2]], {}])
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
        (np.array([np.nan]), r"labels\[0\] is nan"),
        (np.array([[1.0, 0.5]]), r"labels\[0, 1\] is 0.5"),
    ],
)
def test_other_labels_are_named(labels, message):
    with pytest.raises(ValueError, match=message):
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
