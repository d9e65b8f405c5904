"""The score test of each rater: against NumPy and SciPy in float64, its invariances, its size."""

import jax
import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize

from robust_rlhf_jax import Pairs
from robust_rlhf_jax.raters import holm, score_test

K, EACH, P = 40, 50, 3
THETA = np.array([1.5, -1.0, 0.5])


def labelled(seed, k=K, each=EACH):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(k * each, P)).astype(np.float32)
    labels = np.where(rng.logistic(size=len(x)) < x @ THETA, 1.0, -1.0).astype(np.float32)
    return x, labels, np.repeat(np.arange(k), each)


def by_hand(x, labels, raters):
    """(agreement, statistic) in float64: the maximum by SciPy, everything else by the formulas."""
    z = x.astype(float) * labels[:, None]
    theta = minimize(
        lambda t: np.sum(np.logaddexp(0, -z @ t)),
        np.zeros(P),
        jac=lambda t: -z.T @ (1 / (1 + np.exp(z @ t))),
        options={"gtol": 1e-9},
    ).x
    missed = 1 / (1 + np.exp(z @ theta))
    outer = np.einsum("n,ni,nj->nij", missed * (1 - missed), z, z)
    inverse = np.linalg.inv(outer.sum(0))
    rows = []
    for k in range(raters.max() + 1):
        score, known = missed[raters == k] @ z[raters == k], outer[raters == k].sum(0)
        own = known - known @ inverse @ known
        rows.append((theta @ score / np.sqrt(theta @ own @ theta), score @ np.linalg.solve(own, score)))
    return np.array(rows).T


@pytest.mark.slow
def test_it_is_the_formula():
    x, labels, raters = labelled(0)
    found = score_test(x, labels, raters, K)
    agreement, statistic = by_hand(x, labels, raters)
    np.testing.assert_allclose(found.agreement, agreement, rtol=0.01, atol=2e-3)
    np.testing.assert_allclose(found.statistic, statistic, rtol=0.02, atol=5e-3)
    np.testing.assert_array_equal(found.degrees, P)
    np.testing.assert_allclose(found.p_taste, stats.chi2.sf(found.statistic, P), atol=1e-4)
    np.testing.assert_allclose(found.p_agreement, 2 * stats.norm.sf(np.abs(found.agreement)), atol=1e-5)


@pytest.mark.slow
def test_neither_order_nor_sides_nor_names_matter():
    x, labels, raters = labelled(1)
    found = score_test(x, labels, raters, K)
    rng = np.random.default_rng(0)
    order, turn, names = rng.permutation(len(x)), rng.choice([-1.0, 1.0], len(x)), rng.permutation(K)
    other = score_test((x * turn[:, None])[order], (labels * turn)[order], names[raters][order], K)
    for one, two in zip(found, other, strict=True):
        np.testing.assert_allclose(one, np.asarray(two)[names], rtol=2e-3, atol=2e-3)
    scaled = score_test(x * np.float32([1e3, 1.0, 1e-3]), labels, raters, K)
    np.testing.assert_allclose(found.statistic, scaled.statistic, rtol=1e-2, atol=1e-2)


@pytest.mark.slow
def test_vmap_is_a_loop_and_honest_raters_are_rejected_as_often_as_the_level_says():
    x, labels, raters = map(np.stack, zip(*(labelled(seed) for seed in range(20)), strict=True))
    found = jax.vmap(lambda x, labels, raters: score_test(x, labels, raters, K))(x, labels, raters)
    one = score_test(x[3], labels[3], raters[3], K)
    np.testing.assert_allclose(found.statistic[3], one.statistic, rtol=1e-3, atol=1e-3)
    n, level = found.p_taste.size, 0.05
    for p in (found.p_taste, found.p_agreement):
        assert abs(np.mean(p < level) - level) < 5 * np.sqrt(level * (1 - level) / n)
    assert abs(float(found.statistic.mean()) - P) < 5 * np.sqrt(2 * P / n)


@pytest.mark.slow
def test_a_rater_of_one_pair_has_one_degree_of_freedom():
    x, labels, raters = labelled(2)
    raters = raters.copy()
    raters[raters == 7] = 6
    raters[0] = 7
    found = score_test(x, labels, raters, K)
    assert found.degrees[7] == 1
    assert np.isfinite(found.p_taste).all()


def test_holm_is_holms():
    p = np.array([0.01, 0.02, 0.5, 0.012])
    np.testing.assert_allclose(holm(p), [0.04, 0.04, 0.5, 0.04])
    assert holm(np.ones(3)).max() == 1
    with pytest.raises(ValueError, match=r"p-values must lie in \[0, 1\]"):
        holm(np.array([0.5, 1.5]))


def test_frames_and_lists_are_arrays():
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=(60, 2)).astype(np.float32), rng.choice([-1.0, 1.0], 60)
    raters = np.arange(60) % K
    found = score_test(x, labels, raters, K)
    pandas = pytest.importorskip("pandas")
    other = score_test(pandas.DataFrame(x), list(labels), pandas.Series(raters), K)
    np.testing.assert_array_equal(found.agreement, other.agreement)


def test_pairs_are_sent_to_rate_raters():
    pairs = Pairs(np.ones((3, 1)), np.zeros((3, 1)))
    with pytest.raises(
        TypeError, match=r"^x is of the type Pairs: give its differences, .* raters\.rate_raters"
    ):
        score_test(pairs, pairs.labels, np.zeros(3, int), 1)
