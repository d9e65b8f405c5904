"""How an attack comes into `ATTACKS`."""

from types import ModuleType

import pytest

from robust_rlhf_jax.lab.attacks import ATTACKS, flip_random
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
