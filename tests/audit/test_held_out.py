"""Fits of a whole file, once, for real: what they rest on."""

import numpy as np
import pytest
from text_pairs import faulty_file, read

from robust_rlhf_jax.audit.held_out import fitted_rows, hold_out


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    path, faulty, _ = faulty_file(tmp_path_factory.mktemp("pairs"), "tie", 0.1, n=400)
    pairs = read(path)
    return pairs, faulty, hold_out(pairs, folds=3, repeats=1, most=200)


def test_ties_take_no_part(fitted):
    _, faulty, fit = fitted
    np.testing.assert_array_equal(fit.fitted, ~faulty)
    assert (fit.margins[faulty] == 0).all()
    np.testing.assert_allclose(fit.agreement()[faulty], 0.5)
    assert fit.result.margins.shape == (360,)


def test_margins_predict_labels_that_the_fits_did_not_see(fitted):
    _, _, fit = fitted
    assert (fit.margins[fit.fitted] > 0).mean() > 0.7
    assert fit.epsilon == 0
    assert fit.interval[0] == 0 < fit.interval[1]


def test_two_pairs_are_needed(fitted):
    import dataclasses

    pairs, *_ = fitted
    with pytest.raises(ValueError, match="0 pair to fit"):
        fitted_rows(dataclasses.replace(pairs, weights=np.zeros(pairs.n_pairs)))
