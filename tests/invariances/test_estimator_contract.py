"""What every estimator promises: batches, precisions, one compilation, and one bad lane that stays alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from slow_parameters import slow_where

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.likelihood import trimmed_mle
from robust_rlhf_jax.moments import (
    filter_mean,
    prepare_design,
    robust_covariance,
    robust_linear_regression,
    robust_mean,
)
from robust_rlhf_jax.rewards.filter_and_trim import robust_reward

# name: f(x, labels, ε) → (number to compare, status or None)
ESTIMATORS = {
    # Four parts: of three, the two closest to each other tie.
    "robust_mean_in_splits": lambda x, y, e: (robust_mean(x, e, splits=4), None),
    "filter_mean": lambda x, y, e: (lambda r: (r.mean, r.status))(filter_mean(x, e)),
    "robust_covariance": lambda x, y, e: (lambda r: (r.covariance, r.status))(robust_covariance(x, e)),
    "regression_design": lambda x, y, e: (lambda r: (r.fit(y), r.status))(
        prepare_design(x, jnp.asarray(e, x.dtype))
    ),
    "trimmed_mle": lambda x, y, e: (lambda r: (r.theta, r.status))(trimmed_mle(x, y, e, radius=3.0)),
    "robust_reward": lambda x, y, e: (lambda r: (r.fit.theta, r.status))(
        robust_reward(x[:30], x[30:], y[30:], jnp.asarray(e), radius=3.0)
    ),
}
names = pytest.mark.parametrize("name", ESTIMATORS)
some_slow = pytest.mark.parametrize(
    "name", slow_where(lambda name: name in ("robust_reward", "trimmed_mle"), ESTIMATORS)
)
EPSILONS = np.array([0.0, 0.1, 0.2], np.float32)


def batch(lanes=3, n=90, d=3, seed=0):
    """A tenth of the rows of every lane lies far out."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(lanes, n, d))
    y = np.where(x[..., 0] + rng.logistic(size=(lanes, n)) > 0, 1.0, -1.0)
    x[:, ::10] = 4.0 + 0.1 * rng.normal(size=(lanes, len(range(0, n, 10)), d))
    return x.astype(np.float32), y.astype(np.float32)


@pytest.mark.slow
@some_slow
def test_batch_loop_new_values_and_a_bad_lane(name, count_compilations):
    """One compiled program for one lane, one for the batch."""
    single = jax.jit(ESTIMATORS[name])
    many = jax.jit(jax.vmap(ESTIMATORS[name]))
    x, y = batch()
    together, statuses = many(x, y, EPSILONS)
    for i in () if name == "robust_reward" else range(3):  # Algorithm 1's own tests compare that one
        alone, status = single(x[i], y[i], EPSILONS[i])
        np.testing.assert_allclose(together[i], alone, rtol=2e-4, atol=2e-4)
        assert statuses is None or statuses[i] == status
    other = batch(seed=1)
    with count_compilations() as count:
        if name != "robust_reward":
            single(other[0][0], other[1][0], np.float32(0.33))
        many(*other, EPSILONS + np.float32(0.01))
    assert count.compiled == count.traced == []

    corrupted = x.copy()
    corrupted[1, 41, 2] = np.nan  # in the second of four parts
    found, found_statuses = many(corrupted, y, EPSILONS)
    for lane in (0, 2):
        np.testing.assert_array_equal(found[lane], together[lane])
    if statuses is None:
        assert np.isnan(found[1]).any(), "without a status only a NaN can say it"
    else:
        assert found_statuses[1] == Status.NONFINITE
        np.testing.assert_array_equal(found_statuses[::2], statuses[::2])


# The others have their own references in both precisions.
@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name in ESTIMATORS if name in ("robust_covariance", "regression_design")]
)
def test_precisions_agree(name):
    x, y = batch(lanes=1, seed=2)
    narrow = jax.jit(ESTIMATORS[name])(x[0], y[0], np.float32(0.1))[0]
    with jax.enable_x64(True):
        wide = jax.jit(ESTIMATORS[name])(x[0].astype(float), y[0].astype(float), np.float64(0.1))[0]
        assert wide.dtype == jnp.float64
    assert narrow.dtype == jnp.float32
    np.testing.assert_allclose(narrow, wide, rtol=2e-3, atol=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["filter_mean", "robust_linear_regression"])
def test_calls_from_python_compile_once(name, count_compilations):
    """Eager calls: data, ε and ε's Python type may change."""
    x, y = batch(seed=3)
    rows = [(jnp.asarray(a), jnp.asarray(b)) for a, b in zip(x, y, strict=True)]
    estimate = {
        "filter_mean": lambda a, b, e: filter_mean(a, e),
        "robust_linear_regression": lambda a, b, e: robust_linear_regression(a, b, e),
    }[name]
    estimate(*rows[0], 0.1)
    with count_compilations() as count:
        for pair, epsilon in zip(rows, (0.05, np.float64(0.2), np.float32(0.3)), strict=True):
            estimate(*pair, epsilon)
    assert count.compiled == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["filter_mean", "regression_design"])
def test_jit_equals_eager(name, x64):
    x, y = (part[0, ::5].astype(float) for part in batch(seed=4))
    compiled = jax.jit(ESTIMATORS[name])(x, y, 0.1)[0]
    with jax.disable_jit():
        eager = ESTIMATORS[name](jnp.asarray(x), jnp.asarray(y), jnp.asarray(0.1))[0]
    np.testing.assert_allclose(eager, compiled, rtol=1e-8, atol=1e-10)
