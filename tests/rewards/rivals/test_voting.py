"""Votes of bootstrapped heads against SciPy's fits."""

import jax.numpy as jnp
import numpy as np
import pytest
from likelihood.logistic_reference import slsqp
from noisy_labels import RADIUS, sample

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.rewards.rivals.voting import drawn_groups, voting


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "heads"), [("all", 6), ("majority", 5)])
def test_heads_vote_and_the_rest_is_fitted(rule, heads, x64):
    x, labels = sample()
    draws = drawn_groups(heads)[:, np.arange(120) % 10]
    margins = np.array([labels * (x @ slsqp(x, labels, weights, RADIUS)) for weights in draws])
    agreeing = (margins > 0).sum(axis=0)
    kept = agreeing > 0 if rule == "all" else agreeing >= heads / 2
    assert 10 < (~kept).sum() < 50
    fit = voting(jnp.asarray(x), jnp.asarray(labels), 0.1, radius=RADIUS, rule=rule, heads=heads)
    # What a majority of heads agrees with, one reward explains.
    assert fit.status == (Status.CONVERGED if rule == "all" else Status.SEPARABLE)
    np.testing.assert_array_equal(fit.weights, kept)
    expected = slsqp(x[kept], labels[kept], np.ones(kept.sum()), RADIUS)
    np.testing.assert_allclose(fit.theta, expected, atol=1e-4)
    np.testing.assert_allclose(fit.suspicion, np.logaddexp(0, -margins).mean(axis=0), atol=1e-4)


def test_each_head_has_its_own_groups():
    draws = drawn_groups(6)
    assert len(np.unique(draws, axis=0)) == 6
    np.testing.assert_array_equal(draws.max(axis=1), 1.0)
    assert ((draws == 0).sum(axis=1) >= 2).all()


def test_bad_hyperparameters():
    x, labels = map(jnp.asarray, sample())
    with pytest.raises(ValueError, match=r'rule=\'most\' is unknown: it is "all" or "majority"\.'):
        voting(x, labels, 0.1, radius=1.0, rule="most")
    with pytest.raises(ValueError, match=r"heads=1 must be at least 2: they vote\."):
        voting(x, labels, 0.1, radius=1.0, heads=1)


@pytest.mark.slow
@pytest.mark.parametrize("labels", [[1.0], [1.0, -1.0], np.repeat([1.0, -1.0], 20)])
def test_few_or_contradictory_pairs_have_a_finite_fit(labels):
    """Heads that draw none of a few pairs; labels that cancel out, which all heads contradict."""
    fit = voting(jnp.ones((len(labels), 1)), jnp.asarray(labels), 0.1, radius=RADIUS)
    assert fit.status in (Status.CONVERGED, Status.SEPARABLE)
    np.testing.assert_array_equal(fit.weights, 1.0)
    assert np.isfinite(fit.suspicion).all()
