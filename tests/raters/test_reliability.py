"""Reliability of raters: against SciPy's integrals, shrinkage, coverage of the intervals."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, optimize

from robust_rlhf_jax.raters import reliability
from robust_rlhf_jax.raters._finer import around_peaks
from robust_rlhf_jax.raters._reliability import FINER

K, EACH = 60, 25


def margins_of(seed, w):
    """Margins of labels that raters of weights w [K] gave."""
    rng = np.random.default_rng(seed)
    m, who = rng.normal(scale=2.0, size=K * EACH), np.repeat(np.arange(K), EACH)
    return (m * np.where(rng.logistic(size=len(m)) < w[who] * m, 1, -1)).astype(np.float32), who


def test_the_posterior_is_the_integral():
    m, who = margins_of(0, np.random.default_rng(1).normal(1.0, 0.5, K))
    found = reliability(m, who, K)
    pairs_mean = float(np.mean(found.mean))
    np.testing.assert_allclose(pairs_mean, 1.0, atol=1e-4)
    # The scale of the margins, which only the result tells, is that at which rater 0 agrees; the others must, too.
    scale = optimize.brentq(lambda s: integral(found, m[who == 0], s) / s - float(found.mean[0]), 0.5, 2.0)
    for k in (3, 17, 40):
        np.testing.assert_allclose(integral(found, m[who == k], scale) / scale, found.mean[k], atol=0.02)


def integral(found, margins, scale):
    """The posterior mean of w before it is scaled, in float64."""
    middle, spread = np.asarray(found.crowd, float) * scale
    w = np.linspace(-4, 6, 2001)
    logs = (
        -np.sum(np.logaddexp(0, -w[:, None] * margins.astype(float)), axis=1)
        - 0.5 * ((w - middle) / spread) ** 2
    )
    density = np.exp(logs - logs.max())
    return integrate.trapezoid(w * density, w) / integrate.trapezoid(density, w)


def test_intervals_hold_the_truth_as_often_as_they_say():
    w = np.random.default_rng(2).normal(1.0, 0.5, K)
    held = []
    for seed in range(10):
        found = reliability(*margins_of(seed, w), K)
        held.append((np.asarray(found.low) <= w / w.mean()) & (w / w.mean() <= np.asarray(found.high)))
    # Intervals begin and end on a grid, and the scale is estimated, too.
    assert abs(np.mean(held) - 0.95) < 5 * np.sqrt(0.95 * 0.05 / np.size(held))


def test_three_answers_condemn_nobody_and_twenty_five_do():
    m, who = margins_of(3, np.ones(K))
    few = m.copy()
    few[who == 4] = 1.0
    few[np.flatnonzero(who == 4)[:3]] = -1.0
    few[np.flatnonzero(who == 4)[3:]] = 0.0
    assert reliability(few, who, K).high[4] > 0.5
    m[who == 4] = -np.abs(m[who == 4])
    found = reliability(m, who, K)
    assert found.high[4] < 0
    assert found.low[5] > 0


def test_the_order_of_raters_and_pairs_does_not_matter():
    m, who = margins_of(5, np.ones(K))
    order, names = np.random.default_rng(0).permutation(len(m)), np.random.default_rng(1).permutation(K)
    one, other = reliability(m, who, K), reliability(m[order], names[who][order], K)
    np.testing.assert_allclose(one.mean, np.asarray(other.mean)[names], atol=1e-3)


def busy(seed, each, raters=20):
    """(margins, who, w) of raters whose weights are N(1, .3²)."""
    rng, who = np.random.default_rng(seed), np.repeat(np.arange(raters), each)
    w, m = rng.normal(1.0, 0.3, raters), rng.choice([1.0, 2.0, 3.0], raters * each)
    return (m * np.where(rng.logistic(size=len(m)) < w[who] * m, 1, -1)).astype(np.float32), who, w


@pytest.mark.slow
def test_intervals_of_busy_raters_hold_the_truth_as_often_as_they_say():
    """A posterior is narrower than a step of the grid: ends on it covered .77 of these."""
    held = []
    for seed in range(8):
        m, who, w = busy(seed, 6_000)
        found = reliability(m, who, 20)
        held.append((np.asarray(found.low) <= w / w.mean()) & (w / w.mean() <= np.asarray(found.high)))
    assert abs(np.mean(held) - 0.95) < 5 * np.sqrt(0.95 * 0.05 / np.size(held))


@pytest.mark.slow
def test_intervals_are_as_wide_as_those_of_a_normal_posterior():
    found = reliability(*busy(0, 6_000, raters=4)[:2], 4)
    np.testing.assert_allclose(found.high - found.low, 2 * 1.96 * found.error, rtol=0.02)
    np.testing.assert_allclose((found.high + found.low) / 2, found.mean, atol=0.002)


@pytest.mark.slow
def test_a_narrow_posterior_is_the_integral():
    m, who, _ = busy(0, 4_000, raters=4)
    found = reliability(m, who, 4)
    w = np.linspace(0.2, 2.2, 1001)
    # One scale makes all raters' means those of the integrals; it is that of the raw margins.
    middle, spread = np.asarray(found.crowd, float)
    means, errors = [], []
    for k in range(3):
        logs = -np.array([np.logaddexp(0, -one * m[who == k].astype(float)).sum() for one in w])
        logs -= 0.5 * ((w - middle) / spread) ** 2
        density = np.exp(logs - logs.max())
        density /= density.sum()
        means.append(density @ w)
        errors.append(np.sqrt(density @ (w - means[-1]) ** 2))
    ratio = np.array(means) / np.asarray(found.mean)[:3]
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-3)
    np.testing.assert_allclose(errors / ratio, np.asarray(found.error)[:3], rtol=0.02)


@pytest.mark.parametrize("times", [0.01, 0.05, 20.0, 1_000.0])
@pytest.mark.parametrize("contrary", [0.0, 0.45])
def test_the_size_of_margins_does_not_matter(times, contrary):
    """Neither of honest raters nor where nearly half of them mean the opposite, but for margins below 1 of those."""
    m, who, _ = busy(1, 200)
    m[who < contrary * 20] *= -1
    if contrary:
        times = max(times, 1.0)
    one, other = reliability(m, who, 20), reliability(np.float32(times) * m, who, 20)
    for name in one._fields:
        np.testing.assert_allclose(getattr(other, name), getattr(one, name), atol=2e-3, rtol=2e-3)
    if not contrary:
        assert np.average(one.mean) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.slow
def test_a_peak_is_found_however_narrow_and_however_steep_on_one_side():
    """A normal one of a hundredth of a step; one wide; one label far out against three hundred."""
    logs_of = (
        lambda w: -0.5 * ((w - 0.333) / 5e-4) ** 2,
        lambda w: -0.5 * ((w - 0.2) / 0.3) ** 2,
        lambda w: -300 * np.logaddexp(0, -w) - np.logaddexp(0, 1_000.0 * w),
    )
    coarse = np.broadcast_to(np.linspace(-4.0, 6.0, 201, dtype=np.float32), (3, 201))
    density = lambda points: jnp.stack([f(np.asarray(w)) for f, w in zip(logs_of, points, strict=True)])  # noqa: E731
    points, logs = (np.asarray(part, float) for part in around_peaks(density, coarse, density(coarse), FINER))
    ends = [(0.328, 0.338), (-3.0, 3.0), (-0.3, 0.1)]
    for row, (own, f, (low, high)) in enumerate(zip(points, logs_of, ends, strict=True)):
        w = np.linspace(low, high, 200_001)
        told = np.average(w, weights=np.exp(f(w) - f(w).max()))
        spread = np.sqrt(np.average((w - told) ** 2, weights=np.exp(f(w) - f(w).max())))
        chance = np.exp(logs[row] - logs[row].max())
        mean = np.average(own, weights=chance)
        assert abs(mean - told) < 0.15 * spread
        np.testing.assert_allclose(np.sqrt(np.average((own - mean) ** 2, weights=chance)), spread, rtol=0.15)
