"""Which kinds count: those that explain the labels of all raters better, and other tastes than most raters'."""

import numpy as np
import pytest

from robust_rlhf_jax.raters.kinds import OTHER_TASTE, UNKNOWN, admitted, are_noisy, kind_of
from robust_rlhf_jax.raters.mixture import Mixture

# The crowd, two other tastes, contrary and random ones.
FIRST_BAD = 3
BAD_KINDS = ("contrary", "random")


def mixture(evidence, shares):
    return Mixture(None, np.asarray(shares), np.asarray(evidence, float), None, None, None)


def chances(evidence, shares):
    joint = np.exp(evidence) * np.asarray(shares)
    return joint / joint.sum(axis=1, keepdims=True)


def raters_of(kinds, sure=12.0):
    """Log evidence [K, 5]: labels of each rater are explained best by their kind."""
    return sure * np.eye(5)[kinds]


def test_kinds_that_explain_labels_better_count():
    evidence, shares = raters_of([0] * 10 + [1, 3, 4]), [0.6, 0.1, 0.1, 0.1, 0.1]
    np.testing.assert_allclose(admitted(mixture(evidence, shares), FIRST_BAD), chances(evidence, shares))


def test_a_bad_kind_that_explains_little_goes_to_all_others():
    evidence, shares = raters_of([0] * 10 + [1, 4]), [0.6, 0.1, 0.1, 0.1, 0.1]
    found = admitted(mixture(evidence, shares), FIRST_BAD)
    np.testing.assert_allclose(found[:, 3], 0, atol=1e-12)
    expected = chances(evidence, [0.6, 0.1, 0.1, 0.0, 0.1])
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_other_tastes_that_explain_little_are_the_crowds():
    evidence, shares = raters_of([0] * 10 + [4, 3]), [0.6, 0.1, 0.1, 0.1, 0.1]
    evidence[0, 1] = 1.0
    found = admitted(mixture(evidence, shares), FIRST_BAD)
    assert (found[:, 1:3] == 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_allclose(found[:, 0], chances(evidence, shares)[:, :3].sum(axis=1))


@pytest.mark.parametrize(("share", "counts"), [(0.24, True), (0.26, False)])
def test_other_tastes_of_most_raters_are_no_other_tastes(share, counts):
    """Whatever they explain: of two kinds with this share each, both count or neither does."""
    evidence = raters_of([0] * 10 + [1] * 5 + [2] * 5)
    found = admitted(mixture(evidence, [0.96 - 2 * share, share, share, 0.02, 0.02]), FIRST_BAD)
    assert (found[10:, 1:3].sum(axis=1) > 0.9).all() == counts
    assert (found[:, 1:3] == 0).all() == (not counts)


@pytest.mark.parametrize(
    ("pairs", "chance", "opposite", "noisy", "kind"),
    [
        (4, [1, 0, 0, 0, 0], False, False, UNKNOWN),
        (5, [1, 0, 0, 0, 0], False, False, "attentive"),
        (9, [1, 0, 0, 0, 0], False, True, "noisy"),
        (9, [1, 0, 0, 0, 0], True, True, OTHER_TASTE),
        (9, [0.4, 0.4, 0.2, 0, 0], False, False, OTHER_TASTE),
        (9, [0.4, 0.2, 0.1, 0.2, 0.1], True, False, UNKNOWN),
        (9, [0.4, 0, 0, 0.2, 0.4], True, False, "random"),
    ],
)
def test_a_rater_is_what_is_likelier_than_not(pairs, chance, opposite, noisy, kind):
    assert kind_of(pairs, np.array(chance), FIRST_BAD, BAD_KINDS, opposite, noisy) == kind


@pytest.mark.parametrize(
    ("reliability", "high", "agreement", "noisy"),
    [(0.5, 0.9, -2.0, True), (0.7, 0.9, -2.0, False), (0.5, 1.1, -2.0, False), (0.5, 0.9, -1.9, False)],
)
def test_noisy_raters_are_unreliable_by_every_measure(reliability, high, agreement, noisy):
    found = are_noisy(*(np.array([value]) for value in (reliability, high, agreement)))
    assert found.tolist() == [noisy]
