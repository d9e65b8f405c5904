import numpy as np

from robust_rlhf_jax.preferences import RAIL_FEATURES, check_preferences, load_rail_choices, rail_people


def newton(x, labels):
    """Maximum likelihood by Newton's method, in float64."""
    theta = np.zeros(x.shape[1])
    for _ in range(30):
        wrong = 1 / (1 + np.exp(labels * (x @ theta)))
        theta += np.linalg.solve((x.T * wrong * (1 - wrong)) @ x, x.T @ (labels * wrong))
    return theta


def test_counts_and_shapes():
    data, people = load_rail_choices(), rail_people()
    check_preferences(data)
    assert (data.n_pairs, data.horizon, data.reward_dim, data.stationary) == (
        2929,
        1,
        len(RAIL_FEATURES),
        False,
    )
    assert int((data.labels == -1).sum()) == 1474
    assert people.shape == (2929,)
    assert set(people) == set(range(1, 236))


def test_features_are_standardised_over_both_options():
    features = np.asarray(load_rail_choices().features, np.float64).reshape(-1, 4)
    np.testing.assert_allclose(features.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(features.std(axis=0), 1, atol=1e-5)


def test_first_row_is_the_source_row():
    # Person 1 chose A: (2400, 150, 0, 1) before B: (4000, 150, 0, 1), so only the prices differ.
    data = load_rail_choices()
    assert data.labels[0] == -1
    x = np.asarray(data.differences()[0])
    assert x[0] > 0
    np.testing.assert_array_equal(x[1:], 0)


def test_people_prefer_less_of_everything():
    data = load_rail_choices()
    x, labels = np.asarray(data.differences(), np.float64), np.asarray(data.labels, np.float64)
    theta = newton(x, labels)
    assert (theta < 0).all()
    assert np.mean(labels * (x @ theta) > 0) > 0.68
