"""Ways to choose are what they say: shapes, seeds, no side preferred, and what marks each."""

import numpy as np
import pytest

N = 4000


@pytest.fixture
def choosers(benchmarks_on_the_path):
    import choosers

    return choosers.CHOOSERS


@pytest.fixture
def study(benchmarks_on_the_path):
    import other_choosers

    return other_choosers


def test_each_draws_pairs_of_which_no_side_is_preferred(choosers):
    assert len(choosers) > 10
    for name, chooser in choosers.items():
        found, again = chooser(np.random.default_rng(3), N), chooser(np.random.default_rng(3), N)
        assert found.x.shape[0] == found.wins.shape[0] == N, name
        assert np.isfinite(found.x).all(), name
        assert found.wins.dtype == bool, name
        np.testing.assert_array_equal(found.x, again.x, err_msg=name)
        np.testing.assert_array_equal(found.wins, again.wins, err_msg=name)
        # Options that recur come in either place by chance, so that labels of one file are not independent.
        assert abs(found.wins.mean() - 0.5) < 5 * 0.5 / np.sqrt(N) * (
            3 if name in ("ratings", "rounds") else 1
        ), name


def test_chosen_less_rejected(choosers):
    found = choosers["careless"](np.random.default_rng(0), 50)
    np.testing.assert_array_equal(found.preferred(), np.where(found.wins[:, None], found.x, -found.x))


def test_a_round_is_of_two_models(choosers):
    x = choosers["rounds"](np.random.default_rng(0), 500).x
    assert (np.sort(x, axis=1)[:, [0, -1]] == [-1, 1]).all()
    assert (x != 0).sum(axis=1).max() == 2


def test_the_one_reason_decides_a_quarter_of_the_pairs_at_least(choosers):
    """The first feature and the label agree more than they would by half in every file."""
    found = [choosers["one_reason"](np.random.default_rng(seed), N) for seed in range(20)]
    agree = [np.mean((drawn.x[:, 0] > 0) == drawn.wins) for drawn in found]
    # A quarter agrees, and of the others a half on average over files.
    assert abs(np.mean(agree) - 0.625) < 0.1


def test_rated_options_recur(choosers):
    x = choosers["ratings"](np.random.default_rng(0), N).x
    assert 0 < len(np.unique(np.round(np.abs(x[:, 0]), 9))) <= N // 20 * (N // 20 - 1) // 2
    assert (x != 0).any(axis=1).all()


def test_scores_by_hand(study):
    fresh = np.array([[1.0, 0.0], [-2.0, 0.0], [0.0, 1.0]])
    found = study.plain_scores(np.array([1.0, 0.0]), fresh)
    assert found.accuracy == pytest.approx(0.5)
    assert found.loss == pytest.approx(np.mean(np.log1p(np.exp([-1.0, 2.0, 0.0]))))


def test_file_and_fresh_choices_are_of_the_same_people_and_no_pair_is_in_both(study):
    file, fresh = study.drawn("topics", 150, 1)
    again, _ = study.drawn("topics", 150, 1)
    assert file.x.shape == (150, 16)
    assert fresh.shape == (study.FRESH, 16)
    np.testing.assert_array_equal(file.x, again.x)
    assert not set(map(tuple, np.abs(file.x))) & set(map(tuple, np.abs(fresh)))
