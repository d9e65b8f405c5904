"""Rare actions are counted by pair, and hidden up to the budget."""

import jax
import numpy as np
import pytest

from robust_rlhf_jax import sample_preferences
from robust_rlhf_jax.lab.diagnostics import hidden_actions
from robust_rlhf_jax.lab.worlds import hard_instance


@pytest.fixture(scope="module")
def data():
    mdp, behaviour = hard_instance(jax.random.key(0), horizon=2, rare_probability=0.02)
    return sample_preferences(jax.random.key(1), mdp, 500, behaviour=behaviour)


@pytest.mark.slow
def test_counts_are_those_of_a_loop(data):
    found, actions = hidden_actions(data, 0.1), np.asarray(data.actions)
    for a in range(4):
        assert int(found.pairs[a]) == sum(a in pair for pair in actions)
        for h in range(2):
            assert int(found.pairs_at_step[h, a]) == sum(a in pair[:, h] for pair in actions)


@pytest.mark.slow
def test_an_action_is_hidden_once_the_budget_covers_its_pairs(data):
    count = int(hidden_actions(data, 0.0).pairs[3])
    assert 0 < count < 100
    assert not bool(hidden_actions(data, (count - 1) / 500).hidden[3])
    found = hidden_actions(data, count / 500)
    np.testing.assert_array_equal(found.hidden, [False, False, False, True])
    assert bool(found.hidden_at_step[:, 3].all())


@pytest.mark.slow
def test_epsilon_must_be_a_fraction(data):
    with pytest.raises(ValueError, match="outside"):
        hidden_actions(data, 0.6)
