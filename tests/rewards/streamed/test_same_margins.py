"""Margins of a sample beside those of a later pass: rounding is no difference, another pair is."""

import jax.numpy as jnp
import numpy as np

from robust_rlhf_jax.rewards.streamed import same_margins
from robust_rlhf_jax.rewards.streamed.coordinates import Columns
from robust_rlhf_jax.rewards.streamed.same_margins import differ, sampled_differ

M, K, E = 300, 5, 3


def sample():
    rng = np.random.default_rng(0)
    columns = Columns(jnp.ones(K), jnp.asarray(1.0))
    return (
        rng.standard_normal((M, K)).astype(np.float32),
        columns,
        rng.standard_normal((K, E)).astype(np.float32),
    )


def test_only_other_pairs_differ_whatever_the_part_at_a_time(monkeypatch):
    x, columns, theta = sample()
    later = (x.astype(float) @ theta.astype(float)).T
    later[:, [7, 250]] += 0.5
    for part in (same_margins.PART, 64, 1):
        monkeypatch.setattr(same_margins, "PART", part)
        found = sampled_differ(jnp.asarray(x), columns, jnp.asarray(theta), later)
        np.testing.assert_array_equal(np.flatnonzero(found), [7, 250])


def test_margins_that_are_no_numbers_say_nothing():
    other = np.array([[1.0, 2.0, 3.0]])
    np.testing.assert_array_equal(differ(np.array([[np.nan, 2.0, 4.0]]), other), [[False, False, True]])
    assert not differ(other * (1 + 1e-5), other).any()
    assert not differ(other + 0.1, other, rounding=0.2).any()
