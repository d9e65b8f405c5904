"""Worlds that tests of several algorithms share."""

import jax
import pytest

from robust_rlhf_jax import sample_preferences
from robust_rlhf_jax.lab.worlds import partial_coverage_mdp
from robust_rlhf_jax.mdp import expected_features


@pytest.fixture
def holes(x64):
    """A small world whose data leave a hole: (mdp, data, E_ref[φ])."""
    mdp, (policy, _) = partial_coverage_mdp(
        jax.random.key(1), n_states=8, n_actions=3, dim=3, horizon=2, n_rare=1, rare_probability=0.02
    )
    data = sample_preferences(jax.random.key(11), mdp, 400, behaviour=(policy, policy))
    return mdp, data, expected_features(mdp, policy)
