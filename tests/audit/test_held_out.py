"""Fits of a whole file, once, for real: what they rest on."""

import dataclasses

import numpy as np
import pytest
from text_pairs import faulty_file, read

from robust_rlhf_jax import load_rail_choices
from robust_rlhf_jax.audit.findings import find
from robust_rlhf_jax.audit.held_out import enough_pairs, hold_out
from robust_rlhf_jax.audit.source import read_source


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    path, faulty, _ = faulty_file(tmp_path_factory.mktemp("pairs"), "tie", 0.1, n=400)
    pairs = read(path)
    return pairs, faulty, hold_out(pairs, folds=3, repeats=1, most=200)


@pytest.mark.slow
def test_ties_take_no_part(fitted):
    _, faulty, fit = fitted
    np.testing.assert_array_equal(fit.fitted, ~faulty)
    assert (fit.margins[faulty] == 0).all()
    np.testing.assert_allclose(fit.agreement()[faulty], 0.5)
    assert fit.audit.robust.margins.shape == (360,)


@pytest.mark.slow
def test_margins_predict_labels_that_the_fits_did_not_see(fitted):
    _, _, fit = fitted
    assert (fit.margins[fit.fitted] > 0).mean() > 0.7
    assert fit.epsilon == 0
    assert fit.interval[0] == 0 < fit.interval[1]


@pytest.mark.slow
def test_two_pairs_are_needed(fitted):
    pairs, *_ = fitted
    with pytest.raises(ValueError, match="0 pair to fit"):
        enough_pairs(dataclasses.replace(pairs, weights=np.zeros(pairs.n_pairs)))


@pytest.fixture(scope="module")
def rail():
    """The bundled choices, audited without a word on ε."""
    pairs = read_source("rail")
    return pairs, hold_out(pairs, repeats=1)


@pytest.mark.slow
def test_clean_choices_of_people_show_no_corruption(rail):
    _, fit = rail
    assert fit.epsilon == 0
    assert fit.interval[0] == 0


@pytest.mark.slow
def test_a_ceiling_is_no_quota_of_labels(rail):
    """Told ε = .1, the audit of clean choices drops nobody: only evidence flags a label."""
    pairs, _ = rail
    told = find(pairs, hold_out(pairs, 0.1, repeats=1))
    assert told.held_out.audit.flagged.sum() == 292
    assert not told.issues["label"].flag.any()
    assert told.summary.epsilon == 0


@pytest.mark.slow
def test_confident_flips_are_counted_once_whatever_was_told(rail):
    pairs, fit = rail
    wrong = np.argsort(-(pairs.preferred_differences() @ fit.audit.plain.theta))[:290]
    chosen, rejected = np.array(pairs.chosen), np.array(pairs.rejected)
    chosen[wrong], rejected[wrong] = rejected[wrong], chosen[wrong]
    flipped = dataclasses.replace(pairs, chosen=chosen, rejected=rejected)
    for told in (None, 0.2):
        flag = find(flipped, hold_out(flipped, told, repeats=1)).issues["label"].flag
        assert flag[wrong].mean() > 0.9
        assert flag.sum() < 500


def test_what_is_no_pairs_and_folds_that_are_no_number_of_them_are_named():
    pairs = read_source("rail")
    for given in (pairs.chosen, load_rail_choices()):
        with pytest.raises(TypeError, match=r"pairs is of the type .*: give Pairs\(chosen, rejected\)"):
            hold_out(given)
    with pytest.raises(ValueError, match=r"^folds=3\.0: give a whole number\.$"):
        hold_out(pairs, folds=3.0)
    with pytest.raises(ValueError, match=r"^repeats='2': give a whole number\.$"):
        hold_out(pairs, repeats="2")
