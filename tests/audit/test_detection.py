import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn import metrics
from slow_parameters import slow

from robust_rlhf_jax.audit import average_precision, precision, precision_recall_curve, recall


def random_case(seed, n=200, levels=None):
    rng = np.random.default_rng(seed)
    corrupt = rng.uniform(size=n) < 0.2
    scores = (rng.normal(size=n) + corrupt).astype(np.float32)
    return (scores if levels is None else np.round(scores * levels) / levels), corrupt


@pytest.mark.parametrize("seed", range(3))
def test_precision_and_recall_are_those_of_sklearn(seed):
    scores, corrupt = random_case(seed)
    flagged = scores > 0.7
    np.testing.assert_allclose(
        precision(flagged, corrupt), metrics.precision_score(corrupt, flagged), rtol=1e-6
    )
    np.testing.assert_allclose(recall(flagged, corrupt), metrics.recall_score(corrupt, flagged), rtol=1e-6)


def test_undefined_shares_are_nan():
    none, some = np.zeros(4, bool), np.array([True, False, False, True])
    assert np.isnan(precision(none, some))
    assert np.isnan(recall(some, none))
    assert float(precision(some, none)) == 0.0


@pytest.mark.parametrize("levels", [None, 2])
def test_curve_is_that_of_sklearn(levels):
    """With two levels a unit nearly all scores are tied."""
    scores, corrupt = random_case(7, levels=levels)
    precisions, recalls, thresholds = map(np.asarray, precision_recall_curve(scores, corrupt))
    want_precision, want_recall, want_thresholds = metrics.precision_recall_curve(corrupt, scores)
    distinct, first = np.unique(thresholds, return_index=True)
    np.testing.assert_array_equal(distinct, want_thresholds)
    np.testing.assert_allclose(precisions[first], want_precision[:-1], rtol=1e-6)
    np.testing.assert_allclose(recalls[first], want_recall[:-1], rtol=1e-6)
    want = metrics.average_precision_score(corrupt, scores)
    np.testing.assert_allclose(average_precision(scores, corrupt), want, rtol=1e-5)


def test_tied_scores_do_not_depend_on_the_order_of_rows():
    scores, corrupt = random_case(1, levels=1)
    order = np.random.default_rng(0).permutation(len(scores))
    np.testing.assert_allclose(
        average_precision(scores, corrupt), average_precision(scores[order], corrupt[order]), rtol=1e-6
    )


@pytest.mark.slow
def test_all_scores_tied_give_the_base_rate():
    corrupt = np.array([True, False, False, False])
    assert float(average_precision(np.zeros(4, np.float32), corrupt)) == 0.25


def test_batches():
    scores, corrupt = map(np.stack, zip(*(random_case(s) for s in range(4)), strict=True))
    batched = jax.jit(jax.vmap(average_precision))(scores, corrupt)
    np.testing.assert_allclose(
        batched, [average_precision(*c) for c in zip(scores, corrupt, strict=True)], rtol=1e-5
    )


@pytest.mark.parametrize("function", [precision, recall, precision_recall_curve, average_precision])
def test_shapes_must_agree(function):
    with pytest.raises(ValueError, match=r"\(3,\) and \(4,\)"):
        function(np.zeros(3), np.zeros(4, bool))


@pytest.mark.parametrize("dtype", [bool, np.int8, slow(np.uint8), slow(np.uint32), np.float16])
def test_the_type_of_scores_and_of_masks_plays_no_part(dtype):
    rng = np.random.default_rng(0)
    corrupt = rng.uniform(size=600) < 0.5  # more than a byte counts
    scores = rng.integers(0, 2 if dtype is bool else 128, 600).astype(dtype)
    want = metrics.average_precision_score(corrupt, scores.astype(float))
    np.testing.assert_allclose(average_precision(scores, corrupt.astype(np.int8)), want, rtol=1e-5)
    lowest = np.array([-128, 127], np.int8)  # −x of the first is itself
    assert float(average_precision(lowest, [False, True])) == 1.0


@pytest.mark.parametrize("mask", [[1, 5, 7], [1, -1, 1], [0.2, 1.0, 0.0]])
def test_what_is_no_mask_is_refused(mask):
    for function in (precision, recall, average_precision):
        with pytest.raises(ValueError, match="corrupt holds more than true and false"):
            function(np.ones(3, bool), mask)
    with pytest.raises(ValueError, match="flagged holds more than true and false"):
        precision(mask, np.ones(3, bool))


def test_a_score_that_is_no_number_is_refused():
    """It would come last, and so pass for the least suspicious pair."""
    for function in (average_precision, precision_recall_curve):
        with pytest.raises(ValueError, match=r"^scores\[1\] is NaN, which has no place in an order\.$"):
            function([0.5, np.nan, 0.1], [True, False, True])
        function([np.inf, -np.inf, 0.1], [True, False, True])


@pytest.mark.parametrize("function", [precision, recall, precision_recall_curve, average_precision])
def test_a_new_number_of_pairs_compiles_one_program(function, count_compilations):
    scores, corrupt = random_case(0, n=83)
    given = jnp.asarray(scores > 0 if function in (precision, recall) else scores)
    corrupt = jnp.asarray(corrupt)
    with count_compilations() as count:
        function(given, corrupt)
    assert len(count.compiled) <= 1
