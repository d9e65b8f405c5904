"""Who weighs a feature the other way: against SciPy, by draws, and where the crowd is divided or says nothing."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from robust_rlhf_jax.raters._opposite import Weights, log_odds, weighs_opposite
from robust_rlhf_jax.raters.kinds import CERTAINTY

number = st.floats(-3, 3, allow_nan=False)
size = st.floats(0.1, 3)


def one(own, error, mean, spread):
    return Weights(np.array([[own]]), np.array([[error]]), np.array([mean]), np.array([spread]))


@given(number, size, st.floats(0.1, 3), st.sampled_from([-1, 1]))
def test_odds_are_those_of_a_normal_density(own, error, mean, sign):
    expected = sign * (norm.logcdf(0, own, error) - norm.logsf(0, own, error))
    np.testing.assert_allclose(log_odds(one(own, error, sign * mean, 1.0)), expected, rtol=1e-6, atol=1e-6)


@given(number, size, number, size)
def test_the_sign_of_a_feature_does_not_matter(own, error, mean, spread):
    there, turned = one(own, error, mean, spread), one(-own, error, -mean, spread)
    assert log_odds(there) == log_odds(turned)
    assert weighs_opposite(there) == weighs_opposite(turned)


def test_labels_that_say_nothing_name_nobody_of_a_divided_crowd():
    """As many of its members weigh the feature one way as the other; only labels can tell which."""
    assert not weighs_opposite(one(0.01, 1.0, 0.01, 1.0)).any()
    assert not weighs_opposite(one(-0.5, 1.0, 0.01, 1.0)).any()  # likelier than not, by less than 3 nats
    assert weighs_opposite(one(-2.0, 1.0, 0.01, 1.0)).all()


def test_labels_that_shift_the_odds_but_not_beyond_even_name_nobody():
    assert log_odds(one(0.1, 1.0, 2.0, 0.5))[0, 0] - log_odds(one(2.0, 0.5, 2.0, 0.5))[0, 0] > CERTAINTY
    assert not weighs_opposite(one(0.1, 1.0, 2.0, 0.5)).any()
    assert weighs_opposite(one(-0.1, 1.0, 2.0, 0.5)).all()


def test_where_the_crowd_does_not_weigh_a_feature_nobody_weighs_it_the_other_way():
    for own, error, spread in ((0.0, 0.0, 0.0), (1.0, 0.1, 1.0), (-1.0, 0.0, 0.0)):
        assert log_odds(one(own, error, 0.0, spread)) == -np.inf
        assert not weighs_opposite(one(own, error, 0.0, spread)).any()


def test_certain_weights_of_a_certain_crowd():
    """Without spread and error the signs decide."""
    assert weighs_opposite(one(-1.0, 0.0, 1.0, 0.0)).all()
    assert not weighs_opposite(one(1.0, 0.0, 1.0, 0.0)).any()
    assert not weighs_opposite(one(0.0, 0.0, 1.0, 0.0)).any()


def test_of_those_named_most_weigh_it_the_other_way():
    """Weights drawn from the crowd, and what noisy measures of them say: Bayes' rule with the right prior."""
    rng, mean, spread, noise = np.random.default_rng(0), 1.0, 0.7, 0.5
    true = mean + spread * rng.normal(size=20_000)
    seen = true + noise * rng.normal(size=len(true))
    error = 1 / np.sqrt(1 / spread**2 + 1 / noise**2)
    own = error**2 * (mean / spread**2 + seen / noise**2)
    weights = Weights(own[:, None], np.full((len(own), 1), error), np.array([mean]), np.array([spread]))
    named, chance = weighs_opposite(weights)[:, 0], 1 / (1 + np.exp(-log_odds(weights)[:, 0]))
    assert named.sum() > 300
    expected, found = chance[named].mean(), np.mean(true[named] < 0)
    assert abs(found - expected) < 5 * np.sqrt(expected * (1 - expected) / named.sum())
    assert chance[named].min() > 0.5
