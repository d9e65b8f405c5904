"""How well a reward explains labels of which some are slips, against NumPy."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from robust_rlhf_jax.rewards import slips
from robust_rlhf_jax.rewards.slips import FACTORS, SHARES

with_slips = jax.jit(slips.with_slips)
N = 3000


def drawn(share, times=1.0):
    """Margins of labels of which a share is the toss of a coin, taken so many times as long as they are."""
    rng = np.random.default_rng(0)
    m = np.abs(rng.normal(size=N)) * 6
    chance = (1 - share) * scipy.special.expit(m) + share / 2
    return times * m * np.where(rng.uniform(size=N) < chance, 1.0, -1.0)


def likelihoods(m):
    return {
        (share, factor): np.log((1 - share) * scipy.special.expit(factor * m) + share / 2).sum()
        for share, factor in itertools.product(SHARES, FACTORS)
    }


@pytest.mark.parametrize(("share", "times"), [(SHARES[0], 1.0), (SHARES[1], 2.0), (SHARES[2], 0.5)])
def test_slips_are_honest_labels_by_a_coin(share, times):
    """The mixture at its likeliest share and length, less what a parameter costs; uninformative pairs play no part."""
    m = drawn(share, times)
    informative = np.arange(N) < 2000
    expected = likelihoods(m[informative])
    found = with_slips(*(jnp.asarray(part, jnp.float32) for part in (m, np.ones(N), informative)))
    likeliest = max(expected, key=expected.__getitem__)
    np.testing.assert_allclose(found.value, expected[likeliest] - 0.5 * np.log(2000), rtol=1e-5)
    assert (found.share, found.factor) == likeliest
    np.testing.assert_allclose(found.factor * times, 1.0, rtol=0.5)
    assert found.value > scipy.special.log_expit(m[informative] / times).sum() + 3


def test_only_where_pairs_recur_is_a_label_a_slip():
    """Elsewhere a label that contradicts costs its whole margin."""
    m = np.full(N, 4.0)
    m[[7, 8]] = -300.0
    recurs = np.arange(N) != 7
    arrays = (jnp.asarray(part, jnp.float32) for part in (m, recurs, np.ones(N)))
    found = with_slips(*arrays)
    expected = {
        at: value + scipy.special.log_expit(-300.0 * at[1])
        for at, value in likelihoods(np.delete(m, 7)).items()
    }
    np.testing.assert_allclose(found.value, max(expected.values()) - 0.5 * np.log(N), rtol=1e-5)
