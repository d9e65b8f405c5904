"""Slopes against NumPy's polyfit, and intervals that hold the truth."""

import numpy as np
import pytest

from robust_rlhf_jax.lab.reproduce import fit_exponent

EPSILONS = np.array([0.01, 0.02, 0.05, 0.1])


def noisy(slope, spread, seeds, rng):
    return 0.3 * EPSILONS[:, None] ** slope * np.exp(spread * rng.normal(size=(len(EPSILONS), seeds)))


@pytest.mark.parametrize("slope", [0.25, 0.5, 1.0, 1.7])
def test_a_power_law_is_recovered_exactly(slope):
    found = fit_exponent(EPSILONS, np.tile(0.3 * EPSILONS**slope, (7, 1)).T)
    np.testing.assert_allclose([found.slope, found.lower, found.upper], slope, rtol=1e-9)


def test_the_slope_is_that_of_polyfit():
    gaps = noisy(0.7, 0.3, 9, np.random.default_rng(0))
    for statistic in (np.median, np.mean):
        wanted = np.polyfit(np.log(EPSILONS), np.log(statistic(gaps, axis=1)), 1)[0]
        np.testing.assert_allclose(fit_exponent(EPSILONS, gaps, statistic=statistic).slope, wanted, rtol=1e-9)


def test_intervals_hold_the_truth_about_as_often_as_they_say():
    """95 % intervals over 200 draws: 5 standard errors below would be 87 %; the bootstrap of 15 seeds may lose some."""
    rng = np.random.default_rng(1)
    inside = 0
    for _ in range(200):
        found = fit_exponent(EPSILONS, noisy(0.5, 0.4, 15, rng), resamples=300)
        assert found.lower <= found.slope <= found.upper
        inside += found.lower <= 0.5 <= found.upper
    assert inside >= 0.87 * 200


def test_order_of_seeds_and_scale_of_gaps_do_not_matter():
    gaps = noisy(0.5, 0.3, 9, np.random.default_rng(2))
    found, scaled = fit_exponent(EPSILONS, gaps), fit_exponent(EPSILONS, 7 * gaps)
    np.testing.assert_allclose(found, scaled, rtol=1e-9)
    np.testing.assert_allclose(fit_exponent(EPSILONS, gaps[:, ::-1]).slope, found.slope, rtol=1e-12)


def test_a_gap_of_zero_has_a_finite_slope():
    assert np.isfinite(fit_exponent(EPSILONS, np.zeros((4, 3)))).all()


@pytest.mark.parametrize(
    ("epsilons", "gaps", "message"),
    [
        ([0.1], [[0.1]], "distinct"),
        ([0.1, 0.1], [[0.1], [0.1]], "distinct"),
        ([0.1, 0.2], [[0.1]], "must be"),
        ([0.0, 0.2], [[0.1], [0.2]], "positive"),
        ([0.1, 0.2], [[np.nan], [0.2]], "finite"),
    ],
)
def test_bad_input_gets_a_sentence(epsilons, gaps, message):
    with pytest.raises(ValueError, match=message):
        fit_exponent(np.array(epsilons), np.array(gaps))
