"""Crowds of honest raters: reproducible, of the sizes they say, and each as it is described."""

import numpy as np
import pytest
from scipy.special import expit


@pytest.fixture
def study(benchmarks_on_the_path):
    import honest_raters

    return honest_raters


def test_files_are_reproducible_and_no_rater_is_in_both_parts(study):
    for crowd in study.CROWDS:
        file, again = (study.drawn(crowd, 20, 12, 5) for _ in range(2))
        assert len(np.unique(file.pairs.raters)) == 15, crowd
        assert np.isfinite(file.fresh).all(), crowd
        np.testing.assert_array_equal(file.fresh, again.fresh, err_msg=crowd)
        np.testing.assert_array_equal(file.pairs.labels, again.pairs.labels, err_msg=crowd)
        if crowd != "uneven":
            assert file.pairs.n_pairs == 15 * 12, crowd
            assert len(file.fresh) == 5 * 12, crowd


def test_labels_follow_the_utility(study):
    """The score of the logistic model of the crowd's one taste is 0 but for noise: χ² of 6 within 5 standard errors."""
    answers = study.CROWDS["alike"](np.random.default_rng([0, 300, sum(map(ord, "alike"))]), 300, 20)
    taste = np.linalg.lstsq(answers.x, answers.utility, rcond=None)[0]
    file = study.drawn("alike", 300, 20, 0)
    z = np.concatenate([file.pairs.preferred_differences(), file.fresh])
    wrong = expit(-z @ taste)
    score = z.T @ wrong
    information = (z * (wrong * (1 - wrong))[:, None]).T @ z
    assert score @ np.linalg.solve(information, score) < 6 + 5 * np.sqrt(12)


def test_people_of_one_reason_follow_one_feature(study):
    answers = study.CROWDS["one_reason"](np.random.default_rng(1), 40, 50)
    ratio = [
        np.abs(np.linalg.lstsq(answers.x[answers.of == k], answers.utility[answers.of == k], rcond=None)[0])
        for k in range(40)
    ]
    single = [np.sort(taste)[-2] < 1e-6 * taste.max() for taste in ratio]
    assert 4 <= sum(single) <= 20


def test_temperatures_differ_between_people_alone(study):
    answers = study.CROWDS["own_scale"](np.random.default_rng(2), 30, 40)
    tastes = np.array(
        [
            np.linalg.lstsq(answers.x[answers.of == k], answers.utility[answers.of == k], rcond=None)[0]
            for k in range(30)
        ]
    )
    directions = tastes / np.linalg.norm(tastes, axis=1, keepdims=True)
    np.testing.assert_allclose(directions, np.broadcast_to(directions[0], directions.shape), atol=1e-6)
    assert np.std(np.log(np.linalg.norm(tastes, axis=1))) > 0.5


def test_scores_by_hand(study):
    found = study.scored(np.array([1.0, 0.0]), np.array([[1.0, 0.0], [-2.0, 0.0]]))
    np.testing.assert_allclose(found, [0.5, np.mean(np.log1p(np.exp([-1.0, 2.0])))])
