"""Reliability of raters: against SciPy's integrals, shrinkage, coverage of the intervals."""

import numpy as np
from scipy import integrate, optimize

from robust_rlhf_jax.raters import reliability

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
