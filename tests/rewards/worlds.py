"""Labelled differences of one shape, so that the tests of this folder share their programs, and float64 references."""

import jax.numpy as jnp
import numpy as np
import scipy.special
from sklearn.linear_model import LogisticRegression

from robust_rlhf_jax.rewards import RewardFit, fit_differences
from robust_rlhf_jax.rewards.coordinates import UnitFreePairs

N, K = 1000, 6
THETA = np.array([1.0, -1.0, 0.5, -0.5, 1.0, 1.2])


def rows_of(z, labels=1.0, dtype=jnp.float32) -> UnitFreePairs:
    """`UnitFreePairs` of rows that are taken as they are, times their labels."""
    n, r = np.shape(z)
    eye = jnp.eye(r, dtype=dtype)
    labels = jnp.broadcast_to(jnp.asarray(labels, dtype), n)
    return UnitFreePairs(
        labels[:, None] * jnp.asarray(z, dtype),
        jnp.ones(r, dtype),
        eye,
        eye,
        jnp.asarray(r),
        jnp.ones(n, dtype),
    )


def draw_labels(rng, x, theta=THETA):
    return np.where(rng.uniform(size=len(x)) < scipy.special.expit(x @ theta), 1.0, -1.0)


def normal_pairs(seed=0, n=N):
    """(x [n, K], labels): normal differences, Bradley-Terry labels."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, K))
    return x, draw_labels(rng, x)


def rare_pairs(seed=0, n=N, share=0.08):
    """As `normal_pairs`, but the decisive last feature is 0 in all but `share` of the pairs."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, K))
    x[:, 5] = rng.choice([-1.0, 0.0, 1.0], n, p=[share / 2, 1 - share, share / 2])
    return x, draw_labels(rng, x)


def sparse_pairs(seed=0, n=N):
    """Every feature is 0 in most pairs, and a count where it is not."""
    rng = np.random.default_rng(seed)
    x = rng.poisson(0.3, size=(n, K)) - 1.0 * rng.poisson(0.3, size=(n, K))
    return x, draw_labels(rng, x)


def planted(x, labels, share, length):
    """The first `share` of the pairs at one point against θ, `length` typical rows long; (x, labels, planted rows)."""
    x, labels, bad = x.copy(), labels.copy(), np.arange(len(x)) < round(share * len(x))
    x[bad], labels[bad] = -length * np.sqrt(K) * THETA / np.linalg.norm(THETA), 1.0
    return x, labels, bad


def fitted(x, labels, epsilon, dtype=jnp.float32, groups=None, comparisons=None) -> RewardFit:
    """`fit_differences`; within `jax.enable_x64` give dtype float64."""
    x, labels, epsilon = (jnp.asarray(a, dtype) for a in (x, labels, epsilon))
    groups, comparisons = (
        None if numbers is None else jnp.asarray(numbers, jnp.int32) for numbers in (groups, comparisons)
    )
    return fit_differences(x, labels, epsilon, groups, comparisons=comparisons)


def maximum_likelihood(x, labels):
    """scikit-learn's unpenalised logistic regression, θ [k] in float64."""
    model = LogisticRegression(
        C=np.inf, fit_intercept=False, tol=1e-12, max_iter=1000, solver="newton-cholesky"
    )
    return model.fit(np.asarray(x, np.float64), labels).coef_[0]


def standard_errors(x, theta=THETA):
    """Of maximum likelihood at θ."""
    chance = scipy.special.expit(x @ theta)
    return np.sqrt(np.diag(np.linalg.inv((x.T * (chance * (1 - chance))) @ x)))
