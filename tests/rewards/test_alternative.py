"""The explanation that contradicts the believed one: where there is one, whom it names, and that no fit is changed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flipped_choices import surest_flipped

from robust_rlhf_jax.preferences import load_rail_choices
from robust_rlhf_jax.rewards import fit_differences, fit_with_alternative

RAIL = load_rail_choices()
X, LABELS = np.asarray(RAIL.differences()), np.asarray(RAIL.labels)


def fitted(labels, epsilon, x=X):
    return fit_with_alternative(*(jnp.asarray(v, jnp.float32) for v in (x, labels, epsilon)))


def surest(share):
    """(labels, mask of the flipped ones)."""
    data, corrupt = surest_flipped(share)
    return np.asarray(data.labels), corrupt


@pytest.mark.slow
@pytest.mark.parametrize("flipped", [0.0, 0.05, 0.2])
@pytest.mark.parametrize("epsilon", [0.05, 0.2])
def test_honest_choices_and_random_flips_have_one_explanation(flipped, epsilon):
    labels = np.where(np.random.default_rng(0).uniform(size=len(X)) < flipped, -LABELS, LABELS)
    assert not fitted(labels, epsilon)[1].exists


@pytest.mark.slow
def test_where_two_rewards_explain_the_choices_one_of_them_names_the_liars():
    labels, corrupt = surest(0.2)
    found, other = fitted(labels, 0.2)
    assert other.exists
    named = [np.argsort(-np.asarray(by.suspicion), kind="stable")[: corrupt.sum()] for by in (found, other)]
    right = [corrupt[at].mean() for at in named]
    assert max(right) > 0.75
    assert min(right) < 0.25


@pytest.mark.slow
def test_it_changes_no_fit():
    labels, _ = surest(0.1)
    alone = fit_differences(*(jnp.asarray(v, jnp.float32) for v in (X, labels, 0.1)))
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), alone, fitted(labels, 0.1)[0]
    )


@pytest.mark.slow
def test_no_epsilon_and_labels_that_a_reward_explains_leave_no_alternative():
    assert not fitted(surest(0.2)[0], 0.0)[1].exists
    assert not fitted(np.where(X @ np.ones(X.shape[1]) > 0, 1.0, -1.0), 0.2)[1].exists


@pytest.mark.slow
def test_it_depends_on_no_unit_and_no_order():
    labels, _ = surest(0.2)
    order = np.random.default_rng(1).permutation(len(X))
    units = 10.0 ** np.arange(-2, X.shape[1] - 2)
    one, two = fitted(labels, 0.2)[1], fitted(labels[order], 0.2, (X * units)[order])[1]
    assert one.exists
    assert two.exists
    assert np.corrcoef(np.asarray(one.suspicion)[order], np.asarray(two.suspicion))[0, 1] > 0.95


def test_wrong_labels_are_refused():
    with pytest.raises(ValueError, match="labels"):
        fitted(np.zeros(len(X)), 0.1)
