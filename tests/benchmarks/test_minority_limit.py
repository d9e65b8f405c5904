"""The oracle that knows an honest minority: its ratio against sums, and what its table says of a ranking."""

import numpy as np
import pytest

OF = np.repeat(np.arange(5), [2, 3, 6, 4, 8])
THETA, REVERSED = np.array([2.0, -1.0]), np.array([-2.0, -1.0])


@pytest.fixture
def limit():
    import minority_limit

    return minority_limit


@pytest.fixture
def clean(limit):
    """Labels of people who all have the taste `THETA`, without units to remove."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(len(OF), 2))
    z = x * np.where(rng.logistic(size=len(x)) < x @ THETA, 1, -1)[:, None]
    from raters_limit import Law

    return limit.Clean(z, OF, z, THETA, Law(THETA, 1e-6 * np.eye(2)))


def log_likelihood(z, theta):
    return np.array([np.sum(np.log(1 / (1 + np.exp(-z[k == OF] @ theta)))) for k in range(5)])


def test_the_ratio_is_that_of_the_likelihoods(limit, clean):
    expected = log_likelihood(clean.z, REVERSED) - log_likelihood(clean.z, THETA)
    one, own = limit.ratios(clean, 0, REVERSED, 0.0)
    np.testing.assert_allclose(one, expected, rtol=1e-12)
    # The law of own tastes has hardly any spread here.
    np.testing.assert_allclose(own, expected, atol=1e-4)


def test_labels_of_the_minority_are_drawn_from_its_reward(limit):
    rng, of = np.random.default_rng(1), np.repeat(np.arange(400), 25)
    x = rng.normal(size=(len(of), 2))
    z = x * np.where(rng.logistic(size=len(x)) < x @ THETA, 1, -1)[:, None]
    from raters_limit import Law

    many = limit.Clean(z, of, z, THETA, Law(THETA, 1e-6 * np.eye(2)))
    one, _ = limit.ratios(many, 0, REVERSED, 1.0)
    # E[log P(y | θ′) − log P(y | θ)] per pair, y drawn from θ′.
    m, n = x @ REVERSED, x @ THETA
    each = -np.logaddexp(0, -m) + np.logaddexp(0, -n)
    other = -np.logaddexp(0, m) + np.logaddexp(0, n)
    chance = 1 / (1 + np.exp(-m))
    mean = np.mean(chance * each + (1 - chance) * other)
    error = np.std(np.where(rng.random(len(m)) < chance, each, other)) / np.sqrt(len(m))
    assert abs(np.sum(one) / len(of) - mean) < 5 * error


@pytest.mark.slow
def test_the_strongest_feature_is_reversed(limit):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(4000, 2)) * np.array([1.0, 10.0])
    theta = np.array([1.0, 0.3])  # the second moves margins three times as much
    z = x * np.where(rng.logistic(size=len(x)) < x @ theta, 1, -1)[:, None]
    np.testing.assert_allclose(limit.reversed_reward(z), [1.0, -0.3], rtol=0.2)


def test_a_row_counts_who_is_named(limit, clean, monkeypatch):
    # P(minority) > ½ where the ratio is above log 9 = 2.197.
    minority = np.array([[1.0, 2.0, 3.0, 4.0, 5.0], [0.0, 0.0, 0.0, 0.0, 9.0]])
    others = np.array([[-1.0, -1.0, 2.1, 2.3, 3.5], [-2.0, -1.0, -1.0, -1.0, 1.0]])
    monkeypatch.setattr(limit, "both_ways", lambda clean, seed: (minority, others))
    assert limit.row("x", [clean]) == "| x | 4 | .600 / .400 | .200 | .200 / .000 | .200 |"
