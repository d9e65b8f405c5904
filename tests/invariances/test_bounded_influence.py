"""However far an ε/2 of the rows lies, the answer moves by no more than the noise of the clean one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from slow_parameters import slow_but_few

from robust_rlhf_jax.rewards import fit_differences

from . import random_rows as rows

N, K, EPSILON = 400, 4, 0.1
SIZES = (1e2, 1e4, 1e8, 1e30)
THETA = np.array([1.0, -1.0, 0.5, 1.5])
fit = jax.jit(fit_differences)

# name: (f(x, labels, targets, ε) → answer, status or None; largest move in standard deviations of the clean answer)
FUNCTIONS = {
    "robust_mean": (lambda x, o, y, e: (rows.mean(x, e), None), 2.0),
    "robust_covariance": (lambda x, o, y, e: _pair(rows.covariance(x, e), "covariance"), 4.0),
    "robust_second_moment": (lambda x, o, y, e: _pair(rows.second_moment(x, e), "covariance"), 4.0),
    "robust_linear_regression": (lambda x, o, y, e: (rows.regression(x, y, e), None), 2.0),
    "robust_reward": (lambda x, o, y, e: _pair(rows.reward(x, o, e, 5.0).fit, "theta"), 2.0),
    "fit_reward": (lambda x, o, y, e: _pair(fit(x, o, e), "theta"), 2.0),
}
# Standard deviation of an entry of the clean answer at these N, K and noise.
NOISE = {
    "robust_mean": N**-0.5,
    "robust_covariance": (2 / N) ** 0.5,
    "robust_second_moment": (2 / N) ** 0.5,
    "robust_linear_regression": 0.5 * N**-0.5,
    "robust_reward": 0.19,
    "fit_reward": 0.19,
}


def _pair(found, name):
    return getattr(found, name), found.status


def clean(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N, K))
    labels = np.where(x @ THETA + rng.logistic(size=N) > 0, 1.0, -1.0)
    return x, labels, x @ THETA + 0.5 * rng.normal(size=N)


def corrupted(kind, size, seed):
    """An ε/2 of the rows moved to `size`: at one point against θ, in one cell, in all directions; targets with them."""
    x, labels, targets = clean(seed)
    rng = np.random.default_rng(100 + seed)
    bad = rng.permutation(N)[: round(EPSILON / 2 * N)]
    if kind == "point":
        x[bad] = -size * THETA
        labels[bad] = 1.0
    elif kind == "cell":
        x[bad, 0] = -size
        labels[bad] = 1.0
    elif kind == "spread":
        x[bad] = size * rng.normal(size=(len(bad), K))
        labels[bad] = -np.sign(x[bad] @ THETA)
    targets[bad] = size * (rng.choice([-1.0, 1.0], len(bad)) if kind == "targets" else 1.0)
    return x, labels, targets


@pytest.mark.parametrize("kind", ["point", "cell", "spread", "targets"])
@pytest.mark.parametrize("wide", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", slow_but_few(FUNCTIONS, 2))
def test_far_rows_move_the_answer_within_its_noise(name, wide, kind):
    function, allowed = FUNCTIONS[name]
    worst = 0.0
    with jax.enable_x64(wide):
        dtype = jnp.zeros(()).dtype
        for seed in range(2):
            answer, _ = function(*rows.arrays(dtype, *clean(seed), EPSILON))
            for size in SIZES:
                found, status = function(*rows.arrays(dtype, *corrupted(kind, size, seed), EPSILON))
                assert np.isfinite(found).all(), size
                assert status is None or status == 0, size
                worst = max(worst, float(np.max(np.abs(found - answer))))
    print(f"{name}, {kind}: moved by {worst / NOISE[name]:.2f} standard deviations at worst")
    assert worst <= allowed * NOISE[name]


@pytest.mark.slow
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("kind", ["point", "cell", "spread"])
def test_how_far_rows_lie_does_not_matter_to_the_trimmed_likelihood(kind, wide):
    """Algorithm 2 alone trims labels: leverage decides its objective. But not how far the rows lie."""
    with jax.enable_x64(wide):
        dtype = jnp.zeros(()).dtype
        for seed in range(2):
            near, *far = (
                rows.trimmed(*rows.arrays(dtype, *corrupted(kind, size, seed)[:2], EPSILON, 5.0))
                for size in SIZES[1:]
            )
            for found in far:
                assert found.status == near.status == 0
                np.testing.assert_allclose(found.theta, near.theta, atol=0.05)
