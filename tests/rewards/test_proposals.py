"""Whom to doubt first: each proposal beside sorting in NumPy, and without regard to order or swapped pairs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.rewards import proposals
from robust_rlhf_jax.rewards.coordinates import unit_free

from .worlds import N, normal_pairs, planted, rare_pairs


@jax.jit
def propose(x, labels, share):
    pairs = unit_free(x, labels)
    zero = jnp.zeros(x.shape[1], x.dtype)
    return {
        "pairs": pairs,
        "short": proposals.best_share(-proposals.lengths(pairs), share),
        "lonely": proposals.best_share(-proposals.crowds(pairs), share),
        "unsure": proposals.believed_rows(pairs, share, zero, jnp.asarray(False)),
        "likely": proposals.believed_rows(pairs, share, zero, jnp.asarray(True)),
    }


def proposed(x, labels, share=0.8):
    return propose(*(jnp.asarray(a, jnp.float32) for a in (x, labels, share)))


def test_each_keeps_its_share():
    for share in (0.6, 0.9):
        found = proposed(*rare_pairs(0), share)
        for weights in (found["short"], found["lonely"], found["unsure"][0], found["likely"][0]):
            assert weights.shape == (N,)
            assert ((weights >= 0) & (weights <= 1)).all()
            np.testing.assert_allclose(jnp.sum(weights), share * N, rtol=1e-5)


def test_short_rows_are_the_shortest():
    found = proposed(*normal_pairs(0))
    length = np.linalg.norm(np.asarray(found["pairs"].z), axis=1)
    shortest = np.argsort(length)[: int(0.8 * N)]
    np.testing.assert_array_equal(np.sort(np.flatnonzero(np.asarray(found["short"]) == 1)), np.sort(shortest))


def test_copies_stand_together():
    """A tenth of the pairs at one point, and as many at their mirror image: both are crowded."""
    x, labels, bad = planted(*normal_pairs(0), 0.2, 1.0)
    x[:100] *= -1
    labels[:100] *= -1
    np.testing.assert_array_equal(proposed(x, labels)["lonely"], 1.0 - bad)


@pytest.mark.parametrize("size", [0.1, 1.0, 100.0])
def test_a_crowd_is_as_large_as_its_copies(size):
    """Nearer than all others, among them, or farther out than any; everybody else stands (nearly) alone."""
    x, labels = normal_pairs(0)
    x[:30] = size * np.array([1.0, -1.0, 1.0, 1.0, -1.0, 1.0])
    x[:15] *= -1
    found = np.asarray(
        proposals.crowds(unit_free(jnp.asarray(x, jnp.float32), jnp.asarray(labels, jnp.float32)))
    )
    assert (found[:30] >= 30).all()
    assert (found[:30] <= 31).all()
    assert np.mean(found[30:]) < 1.1


def test_likely_rows_are_a_fixed_point():
    """θ̂ of the pairs that θ̂ finds likeliest (Algorithm 2); the start is lost after a dozen rounds."""
    x, labels, _ = planted(*normal_pairs(0), 0.1, 0.8)
    found = proposed(x, labels, 0.9)
    weights, t = found["likely"]
    margins = np.asarray(found["pairs"].margins(t))
    likeliest = np.argsort(-margins)[: int(0.9 * N)]
    assert np.asarray(weights)[likeliest].mean() > 0.97


@pytest.mark.parametrize("change", ["permute", "swap"])
def test_order_and_side_carry_no_information(change):
    x, labels, _ = planted(*normal_pairs(1), 0.1, 2.0)
    rng = np.random.default_rng(0)
    order = rng.permutation(N) if change == "permute" else np.arange(N)
    flips = rng.choice([-1.0, 1.0], N) if change == "swap" else np.ones(N)
    one, other = proposed(x, labels), proposed((flips[:, None] * x)[order], (flips * labels)[order])
    for name in ("short", "lonely"):
        # Whether two pairs happen to share a cell of the grid hangs on rounding.
        assert np.mean(np.abs(other[name] - one[name][order]) > 0.02) < (0.05 if name == "lonely" else 0.005)
    for name in ("unsure", "likely"):
        assert np.mean(np.abs(other[name][0] - one[name][0][order]) > 1e-3) < 0.01
