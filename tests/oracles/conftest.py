"""A small world with clean pairs."""

import jax
import pytest

from robust_rlhf_jax import sample_preferences


@pytest.fixture(scope="module")
def world(make_mdp):
    mdp = make_mdp()
    return mdp, sample_preferences(jax.random.key(0), mdp, 2000)
