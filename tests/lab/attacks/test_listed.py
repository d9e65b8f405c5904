"""How an attack comes into `ATTACKS`."""

from types import ModuleType

import jax
import numpy as np
import pytest

from robust_rlhf_jax import Pairs, sample_preferences, worlds
from robust_rlhf_jax.lab.attacks import ATTACKS, compose, flip_random, push_features
from robust_rlhf_jax.lab.attacks.listed import attacks_in, conduct_of, listed


def module_with(**functions):
    module = ModuleType("new")
    vars(module).update(functions)
    return module


def test_marked_functions_alone_are_listed_and_say_what_they_promise():
    @listed(at_most=True, untouched=("states",))
    def newcomer(key, data, epsilon, mdp):
        return data

    module = module_with(newcomer=newcomer, helper=lambda: None, flip_random=flip_random, NUMBER=3)
    found = attacks_in([module, module], ("newcomer",))
    assert found == {"newcomer": newcomer, "flip_random": flip_random}
    assert conduct_of(newcomer) == (("states",), True, True, False)


def test_a_name_that_is_taken_is_refused():
    @listed()
    def flip_random(key, data, epsilon, mdp):
        return data

    with pytest.raises(ValueError, match="have the name 'flip_random'"):
        attacks_in([module_with(a=ATTACKS["flip_random"], b=flip_random)], ())


def test_pairs_and_another_world_than_that_of_the_data_are_refused():
    key, mdp = jax.random.key(0), worlds.chain_mdp(n_states=4, dim=4, horizon=2)
    data, other = sample_preferences(key, mdp, 20), worlds.chain_mdp(n_states=6, dim=4, horizon=2)
    pairs = Pairs(np.ones((20, 2)), np.zeros((20, 2)))
    for attack in (flip_random, push_features, compose(flip_random)):
        with pytest.raises(
            ValueError, match="data is of the type Pairs: attacks change PreferenceData, such as"
        ):
            attack(key, pairs, 0.1, mdp)
        with pytest.raises(ValueError, match="mdp is of the type PreferenceData: give the LinearMDP"):
            attack(key, data, 0.1, data)
        with pytest.raises(
            ValueError, match=r"of shape \(4, 2, 4\) \[S, A, d\], the MDP of \(6, 2, 4\): give"
        ):
            attack(key, data, 0.1, other)


@pytest.mark.slow
def test_arguments_are_taken_by_place_and_by_name():
    key, mdp = jax.random.key(0), worlds.chain_mdp(n_states=4, dim=4, horizon=2)
    data = sample_preferences(key, mdp, 20)
    by_place = push_features(key, data, 0.2, mdp, 0.5)
    by_name = push_features(key=key, data=data, epsilon=0.2, mdp=mdp, scale=0.5)
    np.testing.assert_array_equal(by_place.features, by_name.features)
    assert (by_place.features != push_features(key, data, 0.2, mdp).features).any()
