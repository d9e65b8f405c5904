import numpy as np

from robust_rlhf_jax.audit._clustered_mean import clustered_mean


def test_error_of_independent_rows_is_the_usual_one():
    values = np.random.default_rng(0).normal(size=(50, 2))
    mean, error = clustered_mean(values, np.arange(50))
    np.testing.assert_allclose(mean, values.mean(axis=0))
    np.testing.assert_allclose(error, values.std(axis=0, ddof=1) / np.sqrt(50))


def test_copies_of_a_row_add_no_information():
    values = np.random.default_rng(0).normal(size=50)
    once = clustered_mean(values, np.arange(50))
    twice = clustered_mean(np.repeat(values, 2), np.repeat(np.arange(50), 2))
    np.testing.assert_allclose(twice, once)
