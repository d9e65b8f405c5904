"""Kernels refuse shapes that would broadcast to another question."""

import jax
import jax.numpy as jnp
import pytest

from robust_rlhf_jax.kernels.logistic import log_likelihoods, value_gradient
from robust_rlhf_jax.kernels.primal_dual import ascent_moments, descent_moments
from robust_rlhf_jax.kernels.quantile import keep_top, upper_threshold
from robust_rlhf_jax.kernels.regression import huber_mean, huber_regression
from robust_rlhf_jax.kernels.removal import remove_softly
from robust_rlhf_jax.kernels.smoothing import smoothed_gradient
from robust_rlhf_jax.kernels.spectral import linear_scores, quadratic_scores

X, COLUMN, ROW, SHORT = jnp.ones((6, 2)), jnp.ones((6, 1)), jnp.ones(6), jnp.ones(3)
STATES, ONE, THETA = jnp.zeros(6, int), jnp.ones(()), jnp.ones(2)
CALLS = {
    "labels as a column": lambda: log_likelihoods(THETA, X, COLUMN),
    "a single label": lambda: log_likelihoods(THETA, X, jnp.ones(1)),
    "θ as a column": lambda: log_likelihoods(THETA[:, None], X, ROW),
    "a single weight": lambda: value_gradient(THETA, X, ROW, jnp.ones(1)),
    "scores of weights as a column": lambda: linear_scores(X, COLUMN),
    "scores of too few weights": lambda: quadratic_scores(X, SHORT),
    "removal by another number of scores": lambda: remove_softly(ROW, SHORT, ONE, ONE, ONE),
    "a quantile of a matrix": lambda: upper_threshold(X, X, ONE),
    "a single capacity": lambda: keep_top(ROW, jnp.ones(1), ONE),
    "targets as a column": lambda: huber_regression(X.T, COLUMN, ROW, jnp.eye(2), ONE),
    "rows for columns": lambda: huber_regression(X, ROW, ROW, jnp.eye(2), ONE),
    "a mean of a matrix": lambda: huber_mean(X, ROW, ONE),
    "moments of too few weights": lambda: ascent_moments(X, X, STATES, SHORT, 4),
    "flow of other rows": lambda: descent_moments(X, X[:3], STATES, ROW, ROW, 4),
    "a matrix to smooth around": lambda: smoothed_gradient(
        jnp.sum, X, jax.random.key(0), smoothing_std=ONE, n_directions=4
    ),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_shape_that_would_broadcast_is_refused(call):
    with pytest.raises(AssertionError):
        call()
