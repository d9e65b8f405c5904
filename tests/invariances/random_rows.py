"""Random configurations of one shape, so that every estimator compiles once for all of them."""

import jax
import jax.numpy as jnp
import numpy as np

from robust_rlhf_jax.likelihood import trimmed_mle
from robust_rlhf_jax.moments import filter_mean, robust_covariance, robust_linear_regression, robust_mean
from robust_rlhf_jax.rewards.filter_and_trim import robust_reward

N, K = 160, 3
EPSILONS = (0.0, 0.05, 0.1, 0.2)

mean = jax.jit(robust_mean)
known_mean = jax.jit(lambda x, epsilon, sigma: filter_mean(x, epsilon, covariance=sigma).mean)
covariance = jax.jit(robust_covariance)
second_moment = jax.jit(lambda x, epsilon: robust_covariance(x, epsilon, assume_centered=True))
regression = jax.jit(robust_linear_regression)
trimmed = jax.jit(lambda x, labels, epsilon, radius: trimmed_mle(x, labels, epsilon, radius=radius))
reward = jax.jit(lambda x, labels, epsilon, radius: robust_reward(x, x, labels, epsilon, radius=radius))


def configuration(seed):
    """(x [N, K], labels, targets, ε, rng) in float64: some heavy-tailed, some with a rare column, a few far."""
    rng = np.random.default_rng(seed)
    x = rng.standard_t(5, (N, K)) if seed % 3 == 0 else rng.normal(size=(N, K))
    x = x @ (np.eye(K) + 0.3 * rng.normal(size=(K, K)))
    if seed % 4 == 1:
        x[:, -1] *= rng.uniform(size=N) < 0.3
    epsilon = EPSILONS[rng.integers(len(EPSILONS))]
    theta = rng.normal(size=K)
    targets = x @ theta + 0.3 * rng.normal(size=N)
    labels = np.where(x @ theta + rng.logistic(size=N) > 0, 1.0, -1.0)
    far = rng.permutation(N)[: int(epsilon / 2 * N)]
    x[far] += rng.choice([5.0, 50.0]) * rng.normal(size=K)
    return x, labels, targets, epsilon, rng


def arrays(dtype, *parts):
    return [jnp.asarray(part, dtype) for part in parts]


def relative_error(found, expected):
    """‖Σ^{-1/2}(Σ̂ − Σ)Σ^{-1/2}‖₂ over the columns of which the filter left anything."""
    found, expected = np.asarray(found, float), np.asarray(expected, float)
    left = np.diag(expected) > 0
    assert (left == (np.diag(found) > 0)).all()
    found, expected = found[left][:, left], expected[left][:, left]
    size = np.sqrt(np.diag(expected))
    found, expected = found / size[:, None] / size, expected / size[:, None] / size
    root = np.linalg.inv(np.linalg.cholesky(expected))
    return np.abs(np.linalg.eigvalsh(root @ (found - expected) @ root.T)).max()
