"""Whom to doubt first: each proposal beside sorting in NumPy, and without regard to order or swapped pairs."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.rewards import proposals
from robust_rlhf_jax.rewards.coordinates import unit_free
from robust_rlhf_jax.rewards.weighted_fit import WeightedFit

from .worlds import N, normal_pairs, planted, rare_pairs, rows_of


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


@pytest.mark.parametrize("size", [1e-4, 1.0, 1e4])
def test_different_rows_are_no_crowd(size):
    """All 63 rows of zeros and ones but the one of zeros, and a copy of the largest."""
    z = np.array(list(itertools.product([0.0, 1.0], repeat=6)))[1:]
    found = proposals.crowds(rows_of(size * np.concatenate([z, -z[-1:]])))
    np.testing.assert_array_equal(found, [1.0] * 62 + [2.0] * 2)


def test_rows_that_differ_by_rounding_are_one_crowd():
    """Half as long as the longest, give or take a few bits."""
    z = np.array([1.0, 0.5, 0.5 * (1 + 1e-6), 0.5 * (1 - 1e-6)])
    np.testing.assert_array_equal(proposals.crowds(rows_of(z[:, None])), [1.0, 3.0, 3.0, 3.0])


def test_rows_of_zeros_are_one_crowd():
    np.testing.assert_array_equal(proposals.crowds(rows_of(np.zeros((5, 3)))), 5.0)


@pytest.mark.slow
def test_rows_are_doubted_by_their_length_and_their_crowd():
    """Half of the rows by length; 1 − 2ε by length, 1 − 2ε and 1 − ε by crowds."""
    rng = np.random.default_rng(0)
    pairs, epsilon = rows_of(rng.normal(size=(N, 6))), jnp.float32(0.1)
    found = jax.jit(proposals.doubted_rows)(pairs, epsilon)
    length = np.linalg.norm(np.asarray(pairs.z), axis=1)
    order = np.argsort(np.argsort(length))
    np.testing.assert_array_equal(found.short_half, order < 500)
    assert found.weights.shape == (3, N)
    np.testing.assert_array_equal(found.weights[0], order < 800)
    for weights, share in zip(found.weights[1:], (0.8, 0.9), strict=True):
        expected = proposals.best_share(-proposals.crowds(pairs), jnp.float32(share))
        np.testing.assert_allclose(weights, expected, atol=1e-4)


@pytest.mark.parametrize(("wide", "count"), [(6, 3), (5, 2)])
def test_wide_rows_are_doubted_in_one_way_less(wide, count, monkeypatch):
    monkeypatch.setattr(proposals, "WIDE", wide)
    pairs = rows_of(np.zeros((20, 6)))
    assert jax.eval_shape(lambda: proposals.doubted_rows(pairs, jnp.float32(0.1))).weights.shape == (
        count,
        20,
    )


def with_fit(monkeypatch, step):
    """`believed_rows` with a stand-in for the fit to the believed pairs: t ↦ step(t)."""
    monkeypatch.setattr(
        proposals, "fit", lambda pairs, weights, t, factor: WeightedFit(step(t), None, factor, None, None)
    )
    return lambda pairs, t, likely: proposals.believed_rows(pairs, jnp.float32(0.8), t, jnp.asarray(likely))


def test_believed_are_the_likeliest_or_the_least_sure(monkeypatch):
    """Once the pairs stay, the rounds end: with the second."""
    pairs = rows_of(np.random.default_rng(0).normal(size=(N, 6)))
    t = jnp.asarray(np.linspace(-1.0, 1.0, 6), jnp.float32)
    margins = np.asarray(pairs.margins(t))
    for likely, merit in ((True, margins), (False, -np.abs(margins))):
        weights, end = with_fit(monkeypatch, lambda t: 2.0 * t)(pairs, t, likely)
        np.testing.assert_array_equal(weights, np.argsort(np.argsort(-merit)) < 0.8 * N)
        np.testing.assert_array_equal(end, 4.0 * t)


@pytest.mark.parametrize(("likely", "wide", "times"), [(True, 2, 2), (False, 2, 1), (True, 1, 1)])
def test_pairs_that_never_stay_end_by_the_rounds(likely, wide, times, monkeypatch):
    """Each fit turns t by a twentieth of a circle; likely pairs have twice as many rounds, unless rows are wide."""
    monkeypatch.setattr(proposals, "WIDE", wide)
    pairs = rows_of(np.random.default_rng(0).normal(size=(N, 2)))
    turn = lambda angle: np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])  # noqa: E731
    believed = with_fit(monkeypatch, lambda t: jnp.asarray(turn(np.pi / 10), jnp.float32) @ t)
    _, end = believed(pairs, jnp.asarray([1.0, 0.0]), likely)
    np.testing.assert_allclose(end, turn(np.pi / 10 * times * proposals.ROUNDS)[:, 0], atol=1e-5)


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
