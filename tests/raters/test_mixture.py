"""The mixture of kinds: of the ends of EM from several spreads the likeliest is taken."""

import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.raters.mixture import (
    FIRST_SPREADS,
    PRIOR_SPREAD,
    SEEN_BAD,
    SEEN_CROWD,
    SEEN_OTHER,
    fit_mixture,
)
from robust_rlhf_jax.rewards import plain_fit

K, EACH, P = 120, 10, 4
CONTRARY = 4  # after the crowd, two reversals and any taste


def few_answers(seed):
    """(preferred less other, who, which raters are contrary): tastes vary much, a tenth says the opposite."""
    rng = np.random.default_rng(seed)
    who, theta = np.repeat(np.arange(K), EACH), np.array([2.0, -1.5, 1.0, 0.5])
    tastes = theta + 1.5 * rng.normal(size=(K, P))
    contrary = np.arange(K) < K // 10
    x = rng.normal(size=(len(who), P))
    labels = np.where(rng.logistic(size=len(who)) < np.sum(x * tastes[who], axis=1), 1, -1)
    return x * (labels * np.where(contrary[who], -1, 1))[:, None], who, contrary


def fitted(z, who):
    t, _ = plain_fit(np.float32(z), np.ones(len(z), np.float32))
    others = jnp.stack([jnp.diag(jnp.asarray([-1.0, 1, 1, 1])), jnp.diag(jnp.asarray([1.0, -1, 1, 1]))])
    mixture = fit_mixture(jnp.float32(z), t, jnp.asarray(who), K, others, jnp.zeros((len(z), 0)))
    return mixture, np.asarray(t, float)


def log_posterior(mixture, t):
    """What EM makes large, written once more."""
    evidence, shares = np.asarray(mixture.evidence, float), np.asarray(mixture.shares, float)
    covariance = np.asarray(mixture.crowd.covariance, float)
    seen = np.array([SEEN_CROWD, *[SEEN_OTHER / 3] * 3, SEEN_BAD, SEEN_BAD])
    base = PRIOR_SPREAD * (t @ t) / P
    inverse_wishart = (
        -0.5 * (P + 2) * (np.linalg.slogdet(covariance)[1] + base * np.trace(np.linalg.inv(covariance)))
    )
    return (
        np.logaddexp.reduce(evidence + np.log(shares), axis=1).sum() + seen @ np.log(shares) + inverse_wishart
    )


@pytest.mark.slow
def test_the_likeliest_of_several_ends_is_taken():
    z, who, contrary = few_answers(0)
    mixture, t = fitted(z, who)
    assert len(mixture.ends) == len(FIRST_SPREADS)
    assert mixture.ends[0] < np.max(mixture.ends) - 5  # the narrow start ends at a lesser maximum
    assert log_posterior(mixture, t) == pytest.approx(float(np.max(mixture.ends)), abs=0.1)
    named = np.argmax(mixture.log_chance, axis=1) == CONTRARY
    assert named[contrary].mean() >= 0.8
    assert named[~contrary].mean() <= 0.05


@pytest.mark.slow
def test_names_and_order_of_raters_do_not_matter():
    z, who, _ = few_answers(0)
    rng = np.random.default_rng(1)
    names, order = rng.permutation(K), rng.permutation(len(who))
    one, other = fitted(z, who)[0], fitted(z[order], names[who[order]])[0]
    np.testing.assert_allclose(one.ends, other.ends, atol=0.05)
    np.testing.assert_allclose(np.exp(one.log_chance), np.exp(other.log_chance)[names], atol=1e-2)
