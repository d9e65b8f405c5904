"""`fit_reward` of pairs with ties: as the decided pairs alone, whichever option stands first, and three chances."""

import dataclasses

import numpy as np
import pytest

from robust_rlhf_jax import Pairs, RewardModel, fit_reward, preferences

N = 600


def votes(seed=0, nu=0.8, corrupted=0):
    rng = np.random.default_rng(seed)
    chosen, rejected = rng.normal(size=(2, N, 2))
    margins = (chosen - rejected) @ np.array([2.0, -1.0])
    utilities = np.stack([margins / 2, np.full(N, np.log(nu)), -margins / 2], axis=1) + rng.gumbel(
        size=(N, 3)
    )
    outcome = np.argmax(utilities, axis=1)
    turned = (outcome == 2)[:, None]
    chosen, rejected = np.where(turned, rejected, chosen), np.where(turned, chosen, rejected)
    strength = np.where(outcome == 1, 0.0, 1.0)
    if corrupted:
        chosen[:corrupted], rejected[:corrupted], strength[:corrupted] = [-4, 2], 0, 1
    return Pairs(chosen, rejected, strength=strength, raters=rng.integers(0, 40, N))


@pytest.mark.slow
def test_theta_and_weights_are_those_of_the_decided_pairs():
    pairs = votes(corrupted=60)
    whole, alone = fit_reward(pairs), fit_reward(pairs.decided())
    np.testing.assert_allclose(whole.theta, alone.theta, rtol=1e-5)
    np.testing.assert_allclose(whole.weights[~pairs.ties], alone.weights, atol=1e-5)
    assert (np.asarray(whole.weights)[pairs.ties] == 1).all()
    assert (np.asarray(whole.suspicion)[pairs.ties] == 0).all()
    assert float(whole.epsilon) > 0.08
    assert len(whole.weights) == N
    assert "decided pairs (" in whole.message
    assert "% of comparisons." in whole.message


@pytest.mark.slow
def test_groups_are_those_of_the_pairs_or_those_given():
    pairs = votes()
    given = fit_reward(dataclasses.replace(pairs, raters=None), groups=pairs.raters)
    np.testing.assert_allclose(given.theta, fit_reward(pairs).theta, rtol=1e-6)


@pytest.mark.slow
def test_three_chances_are_calibrated_on_fresh_votes():
    model, fresh = fit_reward(votes(seed=1)), votes(seed=2)
    chances = np.asarray(model.outcome_probabilities(fresh.chosen, fresh.rejected))
    np.testing.assert_allclose(chances.sum(axis=1), 1.0, rtol=1e-5)
    assert abs(chances[:, 1].mean() - fresh.ties.mean()) < 5 * np.sqrt(0.25 * 2 / N)
    np.testing.assert_allclose(
        chances[:, 0] / (chances[:, 0] + chances[:, 2]),
        model.probability(fresh.chosen, fresh.rejected),
        rtol=1e-4,
    )


@pytest.mark.slow
def test_nothing_depends_on_which_option_is_called_the_first():
    pairs = votes()
    tied = pairs.ties[:, None]
    turned = dataclasses.replace(
        pairs,
        chosen=np.where(tied, pairs.rejected, pairs.chosen),
        rejected=np.where(tied, pairs.chosen, pairs.rejected),
    )
    one, two = fit_reward(pairs), fit_reward(turned)
    assert float(one.tie) == pytest.approx(float(two.tie), rel=1e-5)
    np.testing.assert_allclose(
        one.outcome_probabilities(pairs.chosen, pairs.rejected),
        np.asarray(one.outcome_probabilities(pairs.rejected, pairs.chosen))[:, ::-1],
        atol=1e-6,
    )


@pytest.mark.slow
def test_without_ties_there_are_two_outcomes():
    model = fit_reward(preferences.rail_pairs())
    assert float(model.tie) == 0
    assert int(model.n_decided) == 2929
    chances = np.asarray(model.outcome_probabilities(np.ones((5, 4)), np.zeros((5, 4))))
    assert (chances[:, 1] == 0).all()
    np.testing.assert_allclose(chances[:, 0], model.probability(np.ones((5, 4)), np.zeros((5, 4))), rtol=1e-6)


@pytest.mark.slow
def test_a_pair_of_weight_zero_counts_for_nothing():
    pairs = votes()
    weights = np.ones(N)
    weights[:50] = 0
    whole = fit_reward(dataclasses.replace(pairs, weights=weights))
    rest = fit_reward(pairs.take(np.arange(50, N)))
    np.testing.assert_allclose(whole.theta, rest.theta, rtol=1e-4)
    assert float(whole.tie) == pytest.approx(float(rest.tie), rel=1e-4)
    assert (np.asarray(whole.weights)[:50] == 0).all()


def test_ties_alone_are_refused():
    pairs = votes()
    with pytest.raises(ValueError, match="no pair says what is preferred"):
        fit_reward(dataclasses.replace(pairs, strength=np.zeros(N)))
    with pytest.raises(ValueError, match="groups has shape"):
        fit_reward(pairs, groups=np.zeros(3))


@pytest.mark.slow
def test_a_saved_model_keeps_its_ties(tmp_path):
    model = fit_reward(votes())
    model.save(tmp_path / "model.npz")
    again = RewardModel.load(tmp_path / "model.npz")
    assert float(again.tie) == float(model.tie) > 0
    assert again.message == model.message
