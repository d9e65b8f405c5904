"""WDPO against SciPy from many starts, its penalty from gradients by the options."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from noisy_labels import RADIUS, lowest, sample

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.likelihood.margin_fit import margin_problem
from robust_rlhf_jax.likelihood.margin_losses import TiltedLogistic
from robust_rlhf_jax.rewards.rivals.wdpo import PenalisedProblem, wdpo


def penalised(theta, x, labels, rho):
    """The authors' formula: the loss of chosen and rejected features, and the squares of its gradient by both."""
    margins = labels * (x @ theta)
    wrong = 1 / (1 + np.exp(margins))
    by_chosen, by_rejected = -wrong[:, None] * theta, wrong[:, None] * theta
    squares = np.sum(by_chosen**2, axis=1) + np.sum(by_rejected**2, axis=1)
    return np.mean(np.logaddexp(0, -margins) + rho * squares)


@pytest.mark.slow
@pytest.mark.parametrize("rho", [0.05, 1.0, 20.0])
def test_reaches_the_best_of_many_starts(rho, x64):
    x, labels = sample()
    fit = wdpo(jnp.asarray(x), jnp.asarray(labels), 0.1, radius=RADIUS, rho=rho)
    assert fit.status == Status.CONVERGED
    expected = lowest(lambda t: penalised(t, x, labels, rho))
    assert penalised(np.asarray(fit.theta), x, labels, rho) <= expected.fun + 1e-9
    np.testing.assert_allclose(fit.theta, expected.x, atol=1e-3)


@pytest.mark.slow
def test_value_gradient_and_curvature(x64):
    """The gradient by differences; the curvature from the Jacobian of the residuals q_nθ."""
    (x, labels), theta, rho = sample(n=40), np.array([0.8, -0.5]), 0.7
    plain = margin_problem(TiltedLogistic(jnp.zeros(())), jnp.asarray(x), jnp.asarray(labels), RADIUS)
    problem = PenalisedProblem(**vars(plain), rho=jnp.asarray(rho))
    _, margins, value, gradient = problem.at(jnp.asarray(theta))
    np.testing.assert_allclose(value, penalised(theta, x, labels, rho), rtol=1e-12)
    expected = scipy.optimize.approx_fprime(theta, penalised, 1e-7, x, labels, rho)
    np.testing.assert_allclose(gradient, expected, atol=1e-6)
    wrong, toward = 1 / (1 + np.exp(labels * (x @ theta))), labels[:, None] * x
    bend = -wrong * (1 - wrong)
    jacobian = wrong[:, None, None] * np.eye(2) + bend[:, None, None] * theta[:, None] * toward[:, None, :]
    penalty = 4 * rho * np.einsum("nij,nik->jk", jacobian, jacobian) / 40
    expected = (x.T * wrong * (1 - wrong)) @ x / 40 + penalty
    np.testing.assert_allclose(problem.curvature(jnp.asarray(theta), margins), expected, rtol=1e-9)


@pytest.mark.slow
def test_without_a_penalty_it_is_the_likelihood(x64):
    x, labels = sample()
    fit = wdpo(jnp.asarray(x), jnp.asarray(labels), 0.1, radius=RADIUS, rho=0.0)
    np.testing.assert_allclose(fit.theta, lowest(lambda t: penalised(t, x, labels, 0.0)).x, atol=1e-4)


@pytest.mark.parametrize("rho", [-1.0, np.inf])
def test_a_rho_that_is_no_penalty(rho):
    with pytest.raises(ValueError, match=r"rho=.* must be at least 0 and finite\."):
        wdpo(*map(jnp.asarray, sample()), 0.1, radius=RADIUS, rho=rho)
