"""Where explanations end, and which are dropped."""

import numpy as np

from robust_rlhf_jax.rewards.streamed.settling import HOPELESS, Lanes, _hopeless


def lanes(value, best_value, convicted=None):
    """Two explanations of three pairs, the plain fit first: `t` is 1, `best` 2 everywhere."""
    ones, pairs = np.ones((2, 2)), np.ones((2, 3))
    of_each = [np.asarray(part, float) for part in (value, convicted or [0, 0], [0.01, 0.01])]
    return Lanes(
        np.arange(2), ones, ones, pairs, pairs, ones[0], np.zeros(2), *of_each, 2 * ones, np.asarray(best_value, float),
        np.zeros(2, bool),
    )  # fmt: skip


def test_an_explanation_ends_at_its_best_point_and_the_plain_fit_at_its_last():
    np.testing.assert_array_equal(lanes([-9, -9], [-5, -5]).last(), [[1, 1], [2, 2]])
    np.testing.assert_array_equal(lanes([-5, -5], [-5, -5]).last(), np.ones((2, 2)))


def test_the_plain_fit_is_never_dropped_and_another_where_it_is_far_behind():
    behind = -HOPELESS - 1
    assert _hopeless(lanes([0, behind], [0, behind]), 0.1).tolist() == [False, True]
    assert _hopeless(lanes([behind, 0], [behind, 0]), 0.1).tolist() == [False, False]
    assert not _hopeless(lanes([0, behind + 5], [0, behind + 5]), 0.1).any()


def test_what_convicts_more_than_may_be_drops_nobody():
    behind = -HOPELESS - 1
    assert not _hopeless(lanes([0, behind], [0, behind], convicted=[0.3, 0.0]), 0.1).any()
    assert _hopeless(lanes([0, behind], [0, behind], convicted=[0.3, 0.3]), 0.1).tolist() == [False, True]
