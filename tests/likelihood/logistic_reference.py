"""Weighted logistic likelihood over a ball in NumPy and SciPy, float64."""

import numpy as np
import scipy.optimize
import scipy.special


def mean_likelihood(theta, x, labels, weights):
    return np.average(scipy.special.log_expit(labels * (x @ theta)), weights=weights)


def gradient(theta, x, labels, weights):
    return (weights * labels * scipy.special.expit(-labels * (x @ theta))) @ x / weights.sum()


def slsqp(x, labels, weights, radius):
    """The maximiser over the ball, by sequential quadratic programming from a point inside."""
    return scipy.optimize.minimize(
        lambda t: -mean_likelihood(t, x, labels, weights),
        np.zeros(x.shape[1]),
        jac=lambda t: -gradient(t, x, labels, weights),
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda t: radius**2 - t @ t, "jac": lambda t: -2 * t},
        options={"ftol": 1e-15, "maxiter": 500},
    ).x
