"""Problems and fits that the tests of limited-memory fits share."""

import jax.numpy as jnp
import numpy as np
import scipy.optimize
import scipy.special

from robust_rlhf_jax.likelihood import LogisticProblem

PRECISIONS = [False, True]


def problem_of(x, labels, weights, radius=100.0, start=None, projector=None):
    """In the default precision of the moment; without a projector, which L-BFGS must not need."""
    start = np.zeros(x.shape[1]) if start is None else start
    arrays = map(jnp.asarray, (x, labels, weights, float(radius)))
    row_size = jnp.asarray(np.sqrt(np.average(np.sum(x**2, axis=1), weights=weights)))
    projector = None if projector is None else jnp.asarray(projector)
    return LogisticProblem(*arrays, projector, jnp.asarray(start), None, row_size)


def sample(n=200, k=4, seed=0, condition=1.0):
    """Feature j has size condition^(−j/(k−1)) and its effect is of order 1."""
    rng = np.random.default_rng(seed)
    sizes = condition ** -np.linspace(0, 1, k)
    x, theta = rng.normal(size=(n, k)) * sizes, rng.normal(size=k) / sizes
    labels = np.where(rng.uniform(size=n) < scipy.special.expit(x @ theta / np.sqrt(k)), 1.0, -1.0)
    return x, labels, rng.uniform(0.1, 1.0, n)


def separable(n=200, k=4, seed=2):
    x, _, weights = sample(n, k, seed)
    return x, np.sign(x @ np.linspace(1, -0.6, k)), weights
