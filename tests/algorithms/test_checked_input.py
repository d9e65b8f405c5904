"""What algorithms check before anything is compiled."""

import dataclasses
import warnings
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax import algorithms, rivals, sample_preferences
from robust_rlhf_jax.algorithms.checked_input import check_oracle, checked
from robust_rlhf_jax.lab.pessimistic_median import pessimistic_median
from robust_rlhf_jax.oracles import LSVI


def test_numpy_data_in_double_precision_warn_of_nothing(make_mdp):
    data = sample_preferences(jax.random.key(0), make_mdp(), 10)
    wide = dataclasses.replace(data, features=np.asarray(data.features, np.float64))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, epsilon = checked(jax.random.key(0), wide, 0.1)
    assert epsilon.dtype == jnp.float32


def test_a_class_of_oracles_and_what_is_none_are_named():
    check_oracle(LSVI())
    with pytest.raises(
        ValueError, match=r"^oracle=LSVI is a class: give an oracle of it, such as LSVI\(\)\.$"
    ):
        check_oracle(LSVI)
    with pytest.raises(ValueError, match=r"^oracle='LSVI' is no oracle: give one of .*\.$"):
        check_oracle("LSVI")


def test_every_planner_asks_for_an_oracle(make_mdp):
    data = sample_preferences(jax.random.key(0), make_mdp(), 20)
    for plan in (
        algorithms.condition_number,
        algorithms.first_order,
        algorithms.pessimistic_mle,
        algorithms.standard,
        algorithms.uniform_coverage,
        partial(rivals.fit_then_plan, estimator="cdpo"),
        lambda key, data, _, oracle: pessimistic_median(key, data, np.arange(20) % 2, oracle=oracle),
    ):
        with pytest.raises(ValueError, match=r"^oracle='LSVI' is no oracle"):
            plan(jax.random.key(0), data, 0.1, oracle="LSVI")
