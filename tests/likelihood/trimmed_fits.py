"""Pairs and fits that the tests of Algorithm 2 and of its stationarity share."""

import jax.numpy as jnp
import numpy as np
import scipy.optimize
import scipy.special

from robust_rlhf_jax.likelihood import trimmed_mle
from robust_rlhf_jax.likelihood.trimmed import TrimmedProblem


def sample(n=200, k=4, share=0.0, seed=0):
    """Bradley–Terry labels; the first `share` of the pairs are planted evidence against θ★."""
    rng = np.random.default_rng(seed)
    x, theta = rng.uniform(-1, 1, size=(n, k)), rng.normal(size=k)
    theta *= 2.0 / np.linalg.norm(theta)
    labels = np.where(rng.uniform(size=n) < scipy.special.expit(x @ theta), 1.0, -1.0)
    bad = int(share * n)
    x[:bad], labels[:bad] = -np.sqrt(k) * theta / np.linalg.norm(theta), 1.0
    return x, labels, theta


def fit(x, labels, epsilon, radius=4.0, **options):
    return trimmed_mle(jnp.asarray(x), jnp.asarray(labels), epsilon, radius=radius, **options)


def fit_from(starts, x, labels, epsilon, radius=4.0, **options):
    """From two given starts alone (a fixed number: another one would be another program)."""
    return fit(x, labels, epsilon, radius, starts=jnp.asarray(starts), robust_start=False, **options)


ZEROS = np.zeros((2, 4))


def likelihoods(theta, x, labels):
    return scipy.special.log_expit(labels * (x @ np.asarray(theta, np.float64)))


def numpy_newton(x, labels, radius, steps=40, weights=1.0):
    """Free maximum likelihood in float64; the caller checks that it lies in the ball."""
    theta = np.zeros(x.shape[1])
    for _ in range(steps):
        chance = scipy.special.expit(-labels * (x @ theta))
        hessian = (x.T * (weights * chance * (1 - chance))) @ x
        theta = theta + np.linalg.solve(hessian, (weights * labels * chance) @ x)
    assert np.linalg.norm(theta) < radius
    return theta


def problem_of(x, labels, capacity, epsilon=0.0, radius=20.0):
    """Columns and rows of size 1, the rows spanning everything."""
    x, capacity = jnp.asarray(x), jnp.asarray(capacity)
    k = x.shape[1]
    moment = (x.T * capacity) @ x / capacity.sum()
    numbers = jnp.asarray(epsilon), jnp.asarray(radius), moment, jnp.ones(())
    zero, ones = jnp.zeros(k), jnp.ones(k)
    return TrimmedProblem(x, jnp.asarray(labels), capacity, *numbers, jnp.eye(k), zero, jnp.zeros(()), ones)
