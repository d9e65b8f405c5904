"""Cleaning by the reward gap against SciPy's two fits."""

import jax.numpy as jnp
import numpy as np
import pytest
from likelihood.logistic_reference import slsqp
from noisy_labels import RADIUS, sample

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.rewards.rivals.reward_gap import reward_gap


@pytest.mark.slow
def test_the_least_gaps_go_and_the_rest_is_fitted(x64):
    x, labels = sample()
    first = slsqp(x, labels, np.ones(120), RADIUS)
    kept = np.ones(120, bool)
    kept[np.argsort(labels * (x @ first))[:12]] = False
    fit = reward_gap(jnp.asarray(x), jnp.asarray(labels), 0.1, radius=RADIUS)
    assert fit.status == Status.CONVERGED
    np.testing.assert_allclose(fit.weights, kept, atol=1e-9)
    np.testing.assert_allclose(fit.theta, slsqp(x[kept], labels[kept], np.ones(108), RADIUS), atol=1e-4)
    np.testing.assert_allclose(fit.suspicion, np.logaddexp(0, -labels * (x @ first)), atol=1e-4)
