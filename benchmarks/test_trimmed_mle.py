"""Trimmed maximum likelihood beside the same alternation with scikit-learn's regression, and as n and d grow."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from samples import size_of
from sklearn.linear_model import LogisticRegression

from robust_rlhf_jax.likelihood import trimmed_mle
from robust_rlhf_jax.likelihood.trimmed import default_tolerance

EPSILON, RADIUS = 0.1, 100.0
RIVAL = "alternation with scikit-learn"
MAX_ROUNDS = 100
# The usual size, then n and d smaller and larger.
SIZES = [(100_000, 50), (10_000, 50), (1_000_000, 50), (100_000, 10), (100_000, 200)]


def corrupted_pairs(n, d):
    """Normal differences, Bradley–Terry labels of a θ of norm 2; the most confident tenth is flipped."""
    k_x, k_theta, k_labels = jax.random.split(jax.random.key(0), 3)
    x = jax.random.normal(k_x, (n, d))
    theta = jax.random.normal(k_theta, (d,))
    margins = x @ (2.0 * theta / jnp.linalg.norm(theta))
    labels = jnp.where(jax.random.bernoulli(k_labels, jax.nn.sigmoid(margins)), 1.0, -1.0)
    flipped = jnp.argsort(-labels * margins)[: int(EPSILON * n)]
    return jax.block_until_ready((x, labels.at[flipped].multiply(-1.0)))


def trimmed_likelihood(theta, x, labels):
    """Mean log-likelihood of the best (1−ε)n pairs, in double precision."""
    margins = np.asarray(labels, np.float64) * (np.asarray(x, np.float64) @ np.asarray(theta, np.float64))
    kept = np.sort(margins)[int(EPSILON * len(margins)) :]
    return -np.mean(np.logaddexp(0.0, -kept))


def scikit_alternation(x, labels):
    """θ [k]. From θ = 0, where all pairs tie and all are kept, to a gain within our tolerance."""
    trimmed = int(EPSILON * len(labels))
    model = LogisticRegression(C=np.inf, fit_intercept=False, solver="lbfgs", warm_start=True, max_iter=1000)
    kept, last = slice(None), -np.inf
    for _ in range(MAX_ROUNDS):
        model.fit(x[kept], labels[kept])
        margins = labels * (x @ model.coef_[0])
        kept = np.argpartition(margins, trimmed)[trimmed:]
        objective = -np.mean(np.logaddexp(0.0, -margins[kept]))
        if objective - last <= default_tolerance(x.dtype):
            break
        last = objective
    return model.coef_[0]


@eqx.filter_jit
def fit(x, labels):
    return trimmed_mle(x, labels, EPSILON, radius=RADIUS, robust_start=False)


def timed(measure, pairs, what):
    x = pairs[0]
    return measure(fit, *pairs, what=what, size=f"{size_of(x)}, ε = .1", work=(x.shape[0], "pairs"))


def test_trimmed_mle(measure, beside, benchmark, rows):
    pairs = corrupted_pairs(rows(100_000), 50)
    host = [np.asarray(part) for part in pairs]
    found = timed(measure, pairs, "`trimmed_mle`, one start")
    ours = trimmed_likelihood(found.theta, *host)
    theirs = trimmed_likelihood(scikit_alternation(*host), *host)
    benchmark.extra_info.update(
        trimmed_likelihood=ours,
        beside_trimmed_likelihood=theirs,
        rounds=int(found.rounds),
        newton_steps=int(found.newton_steps),
    )
    assert abs(ours - theirs) <= 1e-5
    beside(lambda: fit(*pairs), lambda: scikit_alternation(*host), name=RIVAL)


@pytest.mark.parametrize(("n", "d"), SIZES)
def test_scaling(measure, rows, n, d):
    timed(measure, corrupted_pairs(rows(n), d), "`trimmed_mle`, one start, scaling")
