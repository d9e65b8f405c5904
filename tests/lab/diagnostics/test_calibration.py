"""How far predicted probabilities are from what happens."""

import numpy as np
import pytest

from robust_rlhf_jax.lab.diagnostics.calibration import calibration_gaps, expected_calibration_error


def test_gaps_are_those_of_bins_counted_by_hand():
    gaps = calibration_gaps(np.array([0.51, 0.52, 0.99]), np.array([1.0, 0.0, 1.0]))
    np.testing.assert_allclose(gaps[0], (1 - 1.03) / 3)
    np.testing.assert_allclose(gaps[9], 0.01 / 3)
    assert sum(map(bool, gaps)) == 2


def test_weights_count_pairs_as_often():
    rng = np.random.default_rng(0)
    confidence, right, times = rng.uniform(0.5, 1, 40), rng.integers(0, 2, 40), rng.integers(0, 4, 40)
    repeated = calibration_gaps(np.repeat(confidence, times), np.repeat(right, times))
    weighted = calibration_gaps(confidence, right, times)
    np.testing.assert_allclose(weighted, np.multiply(repeated, times.sum() / 40), rtol=1e-12)


def test_the_error_of_a_constant_prediction_is_its_distance_from_the_rate():
    right = np.array([1.0, 1.0, 1.0, 0.0])
    assert expected_calibration_error(calibration_gaps(np.full(4, 0.9), right)) == pytest.approx(0.15)
