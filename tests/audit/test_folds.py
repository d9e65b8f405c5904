import numpy as np
import pytest

from robust_rlhf_jax.audit.folds import group_folds, training_rows


@pytest.fixture
def groups():
    rng = np.random.default_rng(0)
    return rng.permutation(np.repeat(np.arange(40), rng.integers(1, 12, 40)))


def test_no_group_is_split_and_folds_are_about_equal(groups):
    fold_of = group_folds(np.random.default_rng(1), groups, 5)
    for group in np.unique(groups):
        assert len(set(fold_of[groups == group])) == 1
    sizes = np.bincount(fold_of, minlength=5)
    assert sizes.max() - sizes.min() <= np.bincount(groups).max()


def test_training_rows_leave_the_fold_out_and_share_a_length(groups):
    fold_of = np.stack([group_folds(np.random.default_rng(seed), groups, 5) for seed in range(3)])
    rows = training_rows(np.random.default_rng(2), fold_of, 5)
    largest = max(np.bincount(of).max() for of in fold_of)
    assert rows.shape == (3, 5, len(groups) - largest)
    for repeat, fold in np.ndindex(3, 5):
        assert (fold_of[repeat, rows[repeat, fold]] != fold).all()
        assert len(set(rows[repeat, fold])) == rows.shape[2]


def test_groups_may_be_names():
    fold_of = group_folds(np.random.default_rng(0), np.array(["b", "a", "b", "c"]), 3)
    assert fold_of[0] == fold_of[2]
    assert len(set(fold_of)) == 3


@pytest.mark.parametrize("folds", [1, 0, -2, 41])
def test_number_of_folds(groups, folds):
    with pytest.raises(ValueError, match=f"folds={folds} must lie between 2 and 40, .* more pairs"):
        group_folds(np.random.default_rng(0), groups, folds)


def test_two_groups_make_two_folds():
    with pytest.raises(ValueError, match=r"^folds=5 must be 2, the number of independent groups of pairs, "):
        group_folds(np.random.default_rng(0), np.arange(10) % 2, 5)


def test_one_group_has_no_folds():
    with pytest.raises(
        ValueError, match=r"^all pairs belong to one group, .* give pairs of 2 groups or more\.$"
    ):
        group_folds(np.random.default_rng(0), np.zeros(10), 2)
