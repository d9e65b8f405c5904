"""Sampled labels and the confidence set about their fit."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from robust_rlhf_jax.likelihood import LogisticProblem, confidence_set, fit_logistic

N, K = 300, 5
EPS = np.finfo(np.float64).eps


def sample(seed, norm=1.0):
    rng = np.random.default_rng(seed)
    x, theta = rng.normal(size=(N, K)) * rng.uniform(0.1, 1.5, K), rng.normal(size=K)
    theta *= norm / np.linalg.norm(theta)
    return x, np.where(rng.uniform(size=N) < 1 / (1 + np.exp(-x @ theta)), 1.0, -1.0), rng


@jax.jit
def fitted_set(x, labels, zeta, radius):
    problem = LogisticProblem(x, labels, jnp.ones(N), radius, jnp.eye(K), jnp.zeros(K))
    return confidence_set(x, labels, fit_logistic(problem).theta, zeta, radius=radius)


@functools.cache
def example_set(zeta):
    x, labels, _ = sample(3)
    return fitted_set(x, labels, zeta, 2.0)
