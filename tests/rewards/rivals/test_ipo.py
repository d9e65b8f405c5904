"""IPO's loss is least squares."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from noisy_labels import RADIUS, lowest, sample

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.rewards.rivals.ipo import ipo


@pytest.mark.slow
def test_it_is_least_squares_of_the_labels(x64):
    x, labels = sample()
    expected = np.linalg.lstsq(x, labels, rcond=None)[0]
    fit = ipo(jnp.asarray(x), jnp.asarray(labels), 0.1, radius=RADIUS)
    assert fit.status == Status.CONVERGED
    np.testing.assert_allclose(fit.theta, expected, atol=1e-8)


@pytest.mark.slow
def test_on_the_ball_it_is_scipys(x64):
    x, labels = sample()
    value = lambda t: np.mean((labels * (x @ t) - 20.0) ** 2)  # noqa: E731
    fit = ipo(jnp.asarray(x), jnp.asarray(labels), 0.1, radius=RADIUS, length=20.0)
    np.testing.assert_allclose(np.linalg.norm(fit.theta), RADIUS, rtol=1e-9)
    np.testing.assert_allclose(value(np.asarray(fit.theta)), lowest(value).fun, rtol=1e-8)


def test_the_length_scales_and_orders_nothing(x64):
    x, labels = (jnp.asarray(part) for part in sample())
    fit = jax.jit(lambda length: ipo(x, labels, 0.1, radius=100.0, length=length))
    one, two = fit(0.5), fit(2.0)
    np.testing.assert_allclose(4.0 * one.theta, two.theta, rtol=1e-6)
