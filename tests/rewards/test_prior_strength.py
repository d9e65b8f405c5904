"""Newton's step for the prior's strength against derivatives by differences, and against the fixed point itself."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from robust_rlhf_jax.rewards.config import RobustFit
from robust_rlhf_jax.rewards.fisher_products import curvature_of, prior_share
from robust_rlhf_jax.rewards.posterior_fit import first_fit, refit
from robust_rlhf_jax.rewards.prior_strength import (
    LEAP,
    PriorShare,
    asked_strength,
    bounds,
    next_strength,
)
from robust_rlhf_jax.rewards.streamed.curvature import prior_share as share_of_factor

from .wide_worlds import N, unit_free_pairs

CONFIG = RobustFit()
again = jax.jit(lambda pairs, weights, last: refit(pairs, weights, last, CONFIG))


def maximum(y, precision, t=None):
    """(t, H) of maximum a posteriori by Newton's method in NumPy, from `t` or 0, to the last digit."""
    t = np.zeros(y.shape[1]) if t is None else t
    while True:
        miss = scipy.special.expit(-(y @ t))
        bend = (y.T * (miss * (1 - miss))) @ y + np.diag(precision)
        step = np.linalg.solve(bend, miss @ y - precision * t)
        t = t + step
        if np.linalg.norm(step) < 1e-10 * np.linalg.norm(t):
            return t, bend


def share(t, bend, precision):
    """`PriorShare` by the inverse."""
    a = np.sqrt(precision)[:, None] * np.linalg.inv(bend) * np.sqrt(precision)
    return PriorShare(np.trace(a), np.trace(a @ a), np.linalg.solve(bend, precision * t))


@pytest.fixture(scope="module")
def wide():
    pairs = unit_free_pairs()
    return pairs, np.asarray(pairs.rows, float), np.asarray(pairs.penalty, float)


def fixed_point(y, pairs, strength):
    """λ that its own fit asks for, with everything computed anew each time."""
    penalty, t, last = np.asarray(pairs.penalty, float), None, 0.0
    while abs(strength - last) > 1e-6 * strength:
        t, bend = maximum(y, strength * penalty, t)
        known = pairs.rank - share(t, bend, strength * penalty).left
        last, strength = strength, float(asked_strength(pairs, t, known, CONFIG))
    return strength


def test_the_derivatives_are_those_of_the_quadratic_model(wide):
    _, y, penalty = wide
    strength, step = 20.0, 1e-4
    t, bend = maximum(y, strength * penalty)
    pairs_alone = bend - np.diag(strength * penalty)

    def at(change):
        precision = strength * np.exp(change) * penalty
        moved = np.linalg.solve(pairs_alone + np.diag(precision), bend @ t)
        return moved, share(moved, pairs_alone + np.diag(precision), precision)

    (below, low), (above, high) = at(-step), at(step)
    known = share(t, bend, strength * penalty)
    np.testing.assert_allclose((above - below) / (2 * step), -known.pull, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose((high.left - low.left) / (2 * step), known.left - known.left_twice, rtol=1e-5)


@pytest.mark.slow
def test_steps_come_to_the_fixed_point_with_twice_the_digits_each(wide):
    pairs, y, _ = wide
    weights, fit = jnp.ones(N), first_fit(pairs)
    end, off = fixed_point(y, pairs, float(fit.strength)), []
    for _ in range(4):
        fit = again(pairs, weights, fit)
        off.append(abs(float(np.log(fit.strength / end))))
    assert off[0] < 0.15
    # Random signs know γ to a percent.
    assert max(off[1:]) < 0.02
    t, _ = maximum(y, end * np.asarray(pairs.penalty, float))
    assert np.linalg.norm(fit.t - t) < 0.01 * np.linalg.norm(t)


@pytest.mark.slow
def test_the_fit_follows_the_strength(wide):
    """t is moved to where the maximum under the new λ lies."""
    pairs, y, penalty = wide
    strength = 0.8 * fixed_point(y, pairs, 20.0)
    t, bend = maximum(y, strength * penalty)
    found, moved = next_strength(
        pairs, jnp.asarray(t, jnp.float32), jnp.float32(strength), share(t, bend, strength * penalty), CONFIG
    )
    new, _ = maximum(y, float(found) * penalty)
    assert np.linalg.norm(moved - new) < 0.25 * np.linalg.norm(t - new)


def test_no_step_leaves_the_bounds_or_leaps(wide):
    pairs, _, penalty = wide
    least, most = bounds(pairs, CONFIG)
    for size, strength in ((1e3, least), (1e-6, most), (1.0, 1.0)):
        t = jnp.full(len(penalty), size, jnp.float32)
        nothing = PriorShare(jnp.float32(0.5), jnp.float32(0.4), 0.9 * t)
        found, moved = next_strength(pairs, t, jnp.float32(strength), nothing, CONFIG)
        asked = asked_strength(pairs, t, pairs.rank - 0.5, CONFIG)
        assert 0.999 * least <= found <= 1.001 * most
        assert abs(np.log(found / asked)) < LEAP + 1e-3 or found in (least, most)
        assert np.isfinite(moved).all()


def test_random_signs_and_a_factor_know_the_share(wide):
    pairs, y, penalty = wide
    strength = 20.0
    t, bend = maximum(y, strength * penalty)
    exact = share(t, bend, strength * penalty)
    t = jnp.asarray(t, jnp.float32)
    precision = jnp.asarray(strength * penalty, jnp.float32)
    by_rows = jax.jit(prior_share)(curvature_of(pairs, jnp.ones(N), pairs.margins(t), precision), t)
    factor = jnp.asarray(np.linalg.cholesky(bend / N), jnp.float32)
    for found in (by_rows, share_of_factor(factor, precision / N, t)):
        np.testing.assert_allclose(found.left, exact.left, rtol=0.02)
        np.testing.assert_allclose(found.left_twice, exact.left_twice, rtol=0.06)
        assert np.linalg.norm(found.pull - exact.pull) < 0.01 * np.linalg.norm(exact.pull)


def test_few_axes_need_no_random_signs():
    rng = np.random.default_rng(0)
    half = rng.normal(size=(9, 4))
    precision, t = np.array([0.1, 0.2, 0.4, 0.0]), rng.normal(size=4)
    bend = half.T @ half / 9 + np.diag(precision)
    exact = share(t, bend, precision)
    given = (np.linalg.cholesky(bend), precision, t)
    found = share_of_factor(*(jnp.asarray(part, jnp.float32) for part in given))
    for one, other in zip(found, exact, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
