"""The reward and the share of the pairs that may be corrupt, told or found, beside what a table shows."""

from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.algorithms import reward_and_share as module
from robust_rlhf_jax.algorithms.reward_and_share import reward_and_share
from robust_rlhf_jax.preferences import as_labelled

from .robust_policy_worlds import PAIRS, fit_of, world


@pytest.mark.slow
@pytest.mark.parametrize(("pairs", "heeded"), [(0, False), (0.5, False), (1, True)])
def test_one_pair_left_out_is_evidence(monkeypatch, pairs, heeded):
    """Where nobody says ε: then disputed pairs and doubted directions count, and without it none."""
    _, data = world("uniform")
    seen = as_labelled(data)
    plain = module.fit_labelled(seen, jnp.float32(0.0))
    doubted = plain.doubted.at[0, 1].set(1.0)
    disputed = plain.undisputed.at[:3].set(0.0)
    share = jnp.float32(pairs / PAIRS)
    said = plain._replace(epsilon=share, undisputed=disputed, doubted=doubted)
    monkeypatch.setattr(module, "fit_labelled", lambda seen, epsilon: said)
    found, remaining = reward_and_share(seen, None, jnp.float32(0.0))
    np.testing.assert_array_equal(found.undisputed, disputed if heeded else plain.weights)
    np.testing.assert_array_equal(found.doubted, doubted if heeded else 0.0 * doubted)
    assert remaining == share


@pytest.mark.parametrize(("told", "remaining"), [(0.3, 0.125), (0.2, 0.0), (0.1, 0.0)])
def test_what_the_table_shows_is_no_longer_among_what_may_be_corrupt(told, remaining, monkeypatch):
    """Of ε = .3, .2 are off the table: what is left of the lies is .1 of .8."""
    asked = []
    monkeypatch.setattr(module, "fit_labelled", lambda seen, epsilon: asked.append(float(epsilon)))
    _, found = reward_and_share(None, jnp.float32(told), jnp.float32(0.2))
    np.testing.assert_allclose(asked, [remaining], atol=1e-6)
    np.testing.assert_allclose(found, remaining, atol=1e-6)


@pytest.mark.parametrize(("found", "remaining"), [(0.3, 0.1), (0.2, 0.0), (0.1, 0.0)])
def test_unknown_corruption_is_what_is_found_beyond_the_table(found, remaining, monkeypatch):
    fit = fit_of(np.ones(4), epsilon=jnp.float32(found))
    monkeypatch.setattr(module, "fit_labelled", lambda seen, epsilon: fit)
    seen = SimpleNamespace(x=jnp.zeros((1, 1)), labels=np.ones(4000))
    _, share = reward_and_share(seen, None, jnp.float32(0.2))
    np.testing.assert_allclose(share, remaining, atol=1e-6)
