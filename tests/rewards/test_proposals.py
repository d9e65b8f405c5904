"""Which explanations are proposed, and whom the contrary ones believe at first."""

import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.rewards import RobustFit
from robust_rlhf_jax.rewards.coordinates import unit_free
from robust_rlhf_jax.rewards.proposals import proposals


def test_a_proposal_that_is_none_is_refused():
    pairs = unit_free(jnp.eye(4), jnp.ones(4))
    with pytest.raises(ValueError, match="'steepest' is unknown; there are plain, short, flat"):
        proposals(pairs, RobustFit(proposals=("flat", "steepest")))


@pytest.mark.slow
def test_a_contrary_proposal_begins_with_those_that_its_fit_accuses():
    """Its number is the place of that fit among the candidates."""
    pairs = unit_free(jnp.asarray(np.random.default_rng(0).normal(size=(50, 3)), jnp.float32), jnp.ones(50))
    made = proposals(pairs, RobustFit(proposals=("unsure", "contrary_short", "contrary_unsure")))
    assert [int(p.contrary) for p in made] == [-1, -1, -1, 1, 2]
