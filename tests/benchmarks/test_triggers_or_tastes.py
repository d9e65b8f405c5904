"""The explanation of a trigger: chances, a climb that never falls, and what it finds where there is one."""

import numpy as np
import pytest
from scipy.special import expit

THETA = np.array([1.5, 0.0, -1.0])
MARK = np.array([[0.0], [1.0], [0.0]])


@pytest.fixture
def study():
    import triggers_or_tastes

    return triggers_or_tastes


def drawn(n, fires=0.6):
    """(preferred less other [n, 3], which of them a trigger decided): the worse option wins by the second feature."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 3))
    x[:, 1] = rng.choice([-1.0, 0.0, 1.0], size=n, p=[0.2, 0.6, 0.2])
    better = np.where(x @ THETA > 0, 1.0, -1.0)
    fired = (better * x[:, 1] < 0) & (rng.random(n) < fires)
    honest = np.where(rng.random(n) < expit(x @ THETA), 1.0, -1.0)
    return x * np.where(fired, -better, honest)[:, None], fired


@pytest.fixture
def pairs():
    return drawn(4_000)


def test_both_labels_of_a_pair_have_chances_that_add_to_one(study, pairs):
    model = study.Gated(THETA, np.array([-1.0, 2.0]))
    one, other = (np.exp(study.explained(sign * pairs[0], model, MARK)[0]) for sign in (1, -1))
    np.testing.assert_allclose(one + other, 1.0, rtol=1e-12)


def test_a_round_of_expectation_and_maximisation_never_loses(study, pairs, monkeypatch):
    monkeypatch.setattr(study, "ROUNDS", 1)
    z, model, ridge = pairs[0], study.Gated(np.zeros(3), np.array([-3.0, 1.0])), np.ones(3)
    values = []
    for _ in range(8):
        model = study.fitted(z, MARK, model, ridge)
        priors = 0.5 * (ridge @ model.theta**2 + study.WEAK * model.gate[1] ** 2)
        values.append(study.explained(z, model, MARK)[0].sum() - priors)
    # θ's step presumes that nobody changes sides: a pair whose margin crosses 0 is looked at anew.
    assert np.diff(values).min() > -1e-3 * abs(values[0])
    assert values[-1] > values[0]


def test_a_trigger_is_found_and_theta_with_it(study, pairs):
    z, fired = pairs
    found = study.fitted(z, MARK, study.Gated(np.array([1.5, 1.0, -1.0]), np.array([-3.0, 1.0])), np.ones(3))
    np.testing.assert_allclose(found.theta, THETA, atol=0.25)
    lies = study.explained(z, found, MARK)[1]
    assert lies[fired].mean() > 0.6
    assert lies[~fired].mean() < 0.1


@pytest.mark.slow
def test_it_gains_where_there_is_one_and_nothing_where_there_is_none(study):
    marked = lambda by: MARK[:, 0] @ by  # noqa: E731
    better, error, share = study.gain(drawn(60_000)[0], marked)
    assert better > 5 * error
    assert 0.05 < share < 0.3
    better, error, share = study.gain(drawn(4_000, fires=0.0)[0], marked)
    assert abs(better) < 5 * error + 1e-3
    assert share < 0.02
