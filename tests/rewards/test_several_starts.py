"""Minima from several starts: which one is taken, and the rows that the starts weigh alike."""

import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.likelihood.margin_fit import MarginFit
from robust_rlhf_jax.likelihood.margin_losses import DensityPower, TiltedLogistic
from robust_rlhf_jax.rewards import several_starts
from robust_rlhf_jax.rewards.several_starts import best_of_starts, row_normalised_weights


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "best"), [((3.0, 1.0, 2.0), 1), ((3.0, 1.0, np.nan), 2), ((np.nan, 1.0, 2.0), 0)]
)
def test_the_lowest_value_wins_unless_one_is_no_number(values, best, monkeypatch):
    """With a stand-in for the fits, whose starts tell them apart by the sum of their weights."""

    def fit_margin_loss(problem):
        if isinstance(problem.loss, TiltedLogistic):
            return MarginFit(jnp.full(2, jnp.sum(problem.weights)), None, None, None, None, None)
        lane = jnp.argmin(jnp.abs(sums - problem.start[0]))
        return MarginFit(problem.start, jnp.zeros(4), jnp.asarray(values)[lane], None, None, lane)

    x = jnp.asarray([[1.0, 0.0], [0.0, 2.0], [3.0, 1.0], [1.0, -1.0]])
    sums = jnp.append(4.0, jnp.sum(row_normalised_weights(x), axis=1))
    monkeypatch.setattr(several_starts, "fit_margin_loss", fit_margin_loss)
    found = best_of_starts(DensityPower(jnp.float32(1.0)), x, jnp.ones(4), jnp.float32(1.0))
    assert found.status == best


@pytest.mark.slow
def test_rows_weigh_by_their_length(x64):
    x = np.random.default_rng(3).normal(size=(80, 2))
    z = x @ np.linalg.inv(np.linalg.cholesky(x.T @ x / len(x))).T
    weights = row_normalised_weights(jnp.asarray(x))
    for rows, found in zip((x, z), weights, strict=True):
        length = np.linalg.norm(rows, axis=1)
        np.testing.assert_allclose(found, length.min() / length, rtol=1e-8)
    with_zero = jnp.asarray(np.vstack([x, np.zeros(2)]))
    np.testing.assert_array_equal(row_normalised_weights(with_zero)[:, -1], 0.0)
