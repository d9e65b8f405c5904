"""The column `weight` of a training set."""

import numpy as np
import pytest

from robust_rlhf_jax.heads.weighted_loss import checked_weights, of_mean_1, placed_weights


def test_weights_are_as_they_are():
    np.testing.assert_array_equal(checked_weights([1, 0.5, 0]), [1.0, 0.5, 0.0])


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ([1.0, None], "The column weight has nan in row 1: give finite numbers of at least 0."),
        ([-1.0, 1.0], "The column weight has -1 in row 0: give finite numbers of at least 0."),
        ([0.0, 0.0], "The column weight is 0 in every row: no pair would be learnt from."),
        (["a", 1.0], "The column weight holds more than numbers: give each pair a number."),
    ],
)
def test_what_cannot_weigh_is_refused(column, said):
    with pytest.raises(ValueError, match=f"^{said}$"):
        checked_weights(column)


def test_column_and_callback_together_have_mean_1():
    column = np.array([1.0, 0.5, 0.0, 1.0])
    np.testing.assert_allclose(of_mean_1(column, None), column / 0.625)
    np.testing.assert_allclose(of_mean_1(column, np.array([0.0, 1.0, 1.0, 0.5])), [0.0, 2.0, 0.0, 2.0])


def test_column_and_callback_that_leave_no_pair_are_refused():
    with pytest.raises(
        ValueError, match=r"^Each pair is 0 in the column weight or left out by the callback:"
    ):
        of_mean_1(np.array([1.0, 0.0]), np.array([0.0, 1.0]))


def test_weights_of_a_callback_follow_the_numbers_of_its_pairs():
    """The trainer's data set was shuffled, and one pair left it."""
    column, now, places = np.array([1.0, 1.0, 1.0, 0.5]), np.array([0.0, 1.0, 1.0]), np.array([2, 3, 0])
    np.testing.assert_allclose(placed_weights(column, now, places), [2.0, 0.0, 0.0, 1.0])
    np.testing.assert_allclose(placed_weights(column, None, places), [1.2, 0.0, 1.2, 0.6], rtol=1e-6)
    np.testing.assert_array_equal(placed_weights(column, None, None), of_mean_1(column, None))
