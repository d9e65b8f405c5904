"""The mixture of kinds: where EM ends, and that names and order of raters do not matter."""

import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.raters.mixture import (
    PRIOR_SPREAD,
    SEEN_BAD,
    SEEN_CROWD,
    SEEN_OTHER,
    SEEN_SPREAD,
    fit_mixture,
)
from robust_rlhf_jax.rewards import plain_fit

K, EACH, P = 120, 10, 4
CONTRARY, RANDOM = 5, 6  # after the crowd, two reversals, any taste and weak ones


def few_answers(seed, random=False):
    """(preferred less other, who, which raters are bad): tastes vary much, a tenth says the opposite, or anything."""
    rng = np.random.default_rng(seed)
    who, theta = np.repeat(np.arange(K), EACH), np.array([2.0, -1.5, 1.0, 0.5])
    tastes = theta + 1.5 * rng.normal(size=(K, P))
    contrary = np.arange(K) < K // 10
    x = rng.normal(size=(len(who), P))
    labels = np.where(rng.logistic(size=len(who)) < np.sum(x * tastes[who], axis=1), 1, -1)
    turned = rng.choice([-1, 1], len(who)) if random else -1
    return x * (labels * np.where(contrary[who], turned, 1))[:, None], who, contrary


def fitted(z, who):
    t, _ = plain_fit(np.float32(z), np.ones(len(z), np.float32))
    others = jnp.stack([jnp.diag(jnp.asarray([-1.0, 1, 1, 1])), jnp.diag(jnp.asarray([1.0, -1, 1, 1]))])
    mixture = fit_mixture(jnp.float32(z), t, jnp.asarray(who), K, others, jnp.zeros((len(z), 0)))
    return mixture, np.asarray(t, float)


def log_posterior(mixture, t):
    """What EM makes large, written once more."""
    evidence, shares = np.asarray(mixture.evidence, float), np.asarray(mixture.shares, float)
    covariance = np.asarray(mixture.crowd.covariance, float)
    seen = np.array([SEEN_CROWD, *[SEEN_OTHER / 4] * 4, SEEN_BAD, SEEN_BAD])
    base = PRIOR_SPREAD * (t @ t) / P
    inverse_wishart = (
        -0.5 * SEEN_SPREAD * (np.linalg.slogdet(covariance)[1] + base * np.trace(np.linalg.inv(covariance)))
    )
    return (
        np.logaddexp.reduce(evidence + np.log(shares), axis=1).sum() + seen @ np.log(shares) + inverse_wishart
    )


@pytest.mark.slow
def test_contrary_and_random_raters_are_found_among_tastes_that_vary_much():
    for random, kind, share in ((False, CONTRARY, 0.8), (True, RANDOM, 0.3)):
        z, who, bad = few_answers(0, random)
        mixture, t = fitted(z, who)
        assert log_posterior(mixture, t) == pytest.approx(float(mixture.value), abs=0.1)
        named = np.argmax(mixture.log_chance, axis=1) == kind
        assert named[bad].mean() >= share
        assert named[~bad].mean() <= 0.05


@pytest.mark.slow
def test_the_spread_of_tastes_is_not_made_small_by_few_answers():
    """Ten answers a rater: by the maxima of raters' posteriors (Laplace) the spread found was a third of this."""
    found = [np.trace(fitted(*few_answers(seed)[:2])[0].crowd.covariance) / P for seed in range(4)]
    assert 1.2 <= np.mean(found) <= 4.0  # 1.5² = 2.25


@pytest.mark.slow
def test_names_and_order_of_raters_do_not_matter():
    z, who, _ = few_answers(0)
    rng = np.random.default_rng(1)
    names, order = rng.permutation(K), rng.permutation(len(who))
    one, other = fitted(z, who)[0], fitted(z[order], names[who[order]])[0]
    np.testing.assert_allclose(one.value, other.value, atol=0.05)
    np.testing.assert_allclose(np.exp(one.log_chance), np.exp(other.log_chance)[names], atol=1e-2)
