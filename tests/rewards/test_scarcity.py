"""Directions that few pairs show: found whatever the rotation and the units, and nothing is known along them."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from robust_rlhf_jax.rewards import RewardFit, RobustFit, fit_differences
from robust_rlhf_jax.rewards.coordinates import unit_free
from robust_rlhf_jax.rewards.scarcity import _beyond, decisive, scarce_directions, secured

from .worlds import N, draw_labels, normal_pairs

RARE = 12  # pairs of 1000


def holes(seed=0):
    """Normal rows, whose last two features are 0 in all but `RARE` pairs each."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N, 6))
    x[:, 4:] = 0.0
    x[:RARE, 4], x[RARE : 2 * RARE, 5] = 0.7, -0.7
    return x, draw_labels(rng, x)


def found_in(x, share):
    rows = scarce_directions(
        unit_free(jnp.asarray(x, jnp.float32), jnp.ones(len(x))).rows, jnp.float32(share), RobustFit()
    )
    return np.asarray(rows)[np.linalg.norm(rows, axis=1) > 0]


@pytest.mark.slow
def test_each_direction_costs_its_own_pairs():
    x, _ = holes()
    assert len(found_in(x, 0.6 * RARE / N)) == 0
    assert len(found_in(x, 1.3 * RARE / N)) == 2
    assert len(found_in(normal_pairs()[0], 0.2)) == 0


def test_it_turns_with_the_rows_and_ignores_units():
    x, _ = holes()
    z = np.asarray(unit_free(jnp.asarray(x, jnp.float32), jnp.ones(N)).rows)
    rotation = scipy.stats.ortho_group.rvs(z.shape[1], random_state=1).astype(np.float32)
    share = jnp.float32(0.05)
    here, there = (
        np.asarray(scarce_directions(jnp.asarray(rows), share, RobustFit())) for rows in (z, z @ rotation)
    )
    np.testing.assert_allclose(here.T @ here, rotation @ (there.T @ there) @ rotation.T, atol=1e-4)
    assert len(found_in(x * 10.0 ** np.arange(-3, 3), 0.05)) == 2


@pytest.mark.slow
def test_the_direction_is_the_rare_feature_and_not_the_noise_of_one_row():
    """θ̂ keeps what it says of the other features; of the rare ones, what a dozen pairs share of those by chance."""
    x, labels = holes()
    found = fit_differences(jnp.asarray(x, jnp.float32), jnp.asarray(labels, jnp.float32), jnp.float32(0.1))
    sure = secured(jnp.asarray(x, jnp.float32), found, jnp.float32(0.1))
    np.testing.assert_allclose(sure.theta[:4], found.theta[:4], atol=0.1)
    spread = np.sqrt(np.mean(x[:, 4:] ** 2, axis=0))
    length = np.linalg.norm(found.theta[:4])
    assert np.abs(sure.theta[4:] * spread).max() < length / np.sqrt(RARE) / 4
    with_all = secured(jnp.asarray(x, jnp.float32), found, jnp.float32(0.0))
    known, before = (np.asarray(f.information) for f in (sure, with_all))
    assert np.abs(known[4:, 4:]).max() < 0.01 * before[4:, 4:].max()
    np.testing.assert_allclose(known[:4, :4], before[:4, :4], rtol=0.05, atol=0.02 * before.max())


@pytest.mark.slow
def test_pairs_of_equal_options_are_as_good_as_absent():
    """200 pairs and 300 of equal options: what 2 % of all may do is what 5 % of the 200 may."""
    x, labels = (part[:200] for part in holes())
    given = [jnp.asarray(part, jnp.float32) for part in (x, labels)]
    found = fit_differences(*given, jnp.float32(0.0))
    filled = found._replace(undisputed=jnp.ones(500))
    without = secured(given[0], found, jnp.float32(0.05))
    beside = secured(jnp.concatenate([given[0], jnp.zeros((300, 6))]), filled, jnp.float32(0.02))
    np.testing.assert_allclose(beside.theta, without.theta, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(beside.information, without.information, rtol=1e-3, atol=1e-2)
    # A fifth of them at most, however many equal pairs there are.
    many = secured(jnp.concatenate([given[0], jnp.zeros((300, 6))]), filled, jnp.float32(0.15))
    fifth = secured(given[0], found, jnp.float32(0.2))
    np.testing.assert_allclose(many.information, fifth.information, rtol=1e-3, atol=1e-2)
    assert not np.allclose(many.information, without.information, rtol=1e-3, atol=1e-2)


@pytest.mark.slow
def test_with_nothing_to_fear_everything_is_kept():
    x, labels = holes()
    found = fit_differences(jnp.asarray(x, jnp.float32), jnp.asarray(labels, jnp.float32), jnp.float32(0.0))
    sure = secured(jnp.asarray(x, jnp.float32), found, jnp.float32(0.0))
    np.testing.assert_allclose(sure.theta, found.theta, rtol=1e-3, atol=1e-3)
    margins = np.maximum(np.abs(x @ np.asarray(found.theta, float)), 1e-3)
    secant = (x.T * (np.tanh(margins / 2) / (2 * margins))) @ x
    np.testing.assert_allclose(sure.information, secant, rtol=1e-3, atol=1e-2)


@pytest.mark.slow
def test_lies_by_some_of_the_few_leave_the_rest_known():
    """Disputed pairs are among those that show a scarce direction: what is known of the others does not change."""
    x, labels = holes()
    found = fit_differences(jnp.asarray(x, jnp.float32), jnp.asarray(labels, jnp.float32), jnp.float32(0.1))
    disputed = found._replace(undisputed=found.undisputed.at[: 2 * RARE - 3].set(0.0))
    here, there = (
        secured(jnp.asarray(x, jnp.float32), f, jnp.float32(0.1)).information for f in (found, disputed)
    )
    np.testing.assert_allclose(np.asarray(there)[:4, :4], np.asarray(here)[:4, :4], rtol=0.05, atol=3.0)


def few(count):
    """`count` rows of both signs alone show the first of three axes, the others the second, and none the third."""
    z = np.zeros((200, 3), np.float32)
    z[:count, 0] = np.where(np.arange(count) % 2, 3.0, -3.0)
    z[count:, 1] = 1.0
    return jnp.asarray(z)


@pytest.mark.parametrize(("share", "scarce"), [(17.9, False), (18.9, False), (19.0, True), (20.0, True)])
def test_a_direction_is_scarce_if_the_share_holds_more_than_nine_tenths_of_it(share, scarce):
    """Of twenty rows alike: eighteen hold nine tenths and no more."""
    found = np.asarray(scarce_directions(few(20), jnp.float32(share / 200), RobustFit()))
    expected = np.diag([1.0, 0.0, 0.0]) if scarce else np.zeros((3, 3))
    np.testing.assert_allclose(found.T @ found, expected, atol=1e-5)
    assert (np.linalg.norm(found, axis=1) > 0).sum() == scarce


def test_the_decisive_share_rises_from_three_fifths_to_nine_tenths():
    shares = jnp.asarray([0.0, 0.01, 0.025, 0.05, 0.051, 0.2, 0.49])
    np.testing.assert_allclose(
        decisive(shares, RobustFit()), [0.6, 0.66, 0.75, 0.9, 0.9, 0.9, 0.9], rtol=1e-6
    )


@pytest.mark.parametrize(("rows", "scarce"), [(1, True), (2, True), (3, True), (4, False)])
def test_a_small_share_needs_to_hold_less_of_a_direction(rows, scarce):
    """One per cent is two pairs of 200: two of three hold .67 > .66 of it, two of four a half."""
    found = np.asarray(scarce_directions(few(rows), jnp.float32(0.0101), RobustFit()))
    np.testing.assert_allclose(found.T @ found, np.diag([float(scarce), 0.0, 0.0]), atol=1e-5)


@pytest.mark.parametrize(("degrees", "kept"), [(0.0, False), (40.0, False), (50.0, True), (90.0, True)])
@pytest.mark.parametrize("length", [1e-3, 1.0, 1e3])
def test_of_the_doubted_only_what_is_at_more_than_45_degrees_to_the_scarce_counts(degrees, kept, length):
    """Its part beyond the scarce direction, at length 1; a row of zeros is no direction."""
    angle = np.deg2rad(degrees)
    doubted = np.zeros((3, 3), np.float32)
    doubted[1] = length * np.array([np.cos(angle), np.sin(angle), 0.0])
    scarce = np.diag([1.0, 0.0, 0.0]).astype(np.float32)
    found = np.asarray(_beyond(jnp.asarray(doubted), jnp.asarray(scarce)))
    np.testing.assert_allclose(found.T @ found, np.diag([0.0, float(kept), 0.0]), atol=1e-5)


@pytest.mark.slow
def test_what_is_known_beside_doubted_directions_is_the_secant_information_of_the_rest(x64):
    """In NumPy: rows and θ without the doubted span, each row by the share of its squared length that is left."""
    x, labels = normal_pairs(0, 200)
    x[9] = 0.0
    pairs = unit_free(jnp.asarray(x), jnp.asarray(labels))
    z, to_theta, from_theta = (np.asarray(part) for part in (pairs.rows, pairs.to_theta, pairs.from_theta))
    rng = np.random.default_rng(0)
    theta, undisputed, doubted = rng.normal(size=6), rng.uniform(0.1, 1.0, size=200), np.zeros((6, 6))
    doubted[[1, 4]] = rng.normal(size=(2, 6)) * [[1e-2], [30.0]]
    found = RewardFit(*[None] * len(RewardFit._fields))._replace(
        theta=jnp.asarray(theta), undisputed=jnp.asarray(undisputed), doubted=jnp.asarray(doubted)
    )
    sure = secured(jnp.asarray(x), found, jnp.asarray(0.0))
    basis = np.linalg.qr((doubted[[1, 4]] @ from_theta.T).T)[0]
    clear = np.eye(6) - basis @ basis.T
    t, rows = clear @ from_theta @ theta, z @ clear
    length = np.sum(z**2, axis=1)
    counts = undisputed * np.sum(rows**2, axis=1) / np.where(length > 0, length, 1.0)
    size = np.maximum(np.abs(rows @ t), 1e-3)
    known = (rows.T * (counts * np.tanh(size / 2) / (2 * size))) @ rows
    np.testing.assert_allclose(sure.theta, to_theta @ t, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(sure.information, from_theta.T @ known @ from_theta, rtol=1e-8, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("length", [1e-3, 1.0, 1e3])
def test_nothing_is_known_along_doubted_directions_of_any_length(length):
    x, labels = normal_pairs()[:2]
    x, labels = jnp.asarray(x, jnp.float32), jnp.asarray(labels, jnp.float32)
    found = fit_differences(x, labels, jnp.float32(0.0))
    doubted = jnp.zeros_like(found.doubted).at[0, 1].set(length).at[2, 3].set(-length)
    before = np.asarray(secured(x, found, jnp.float32(0.0)).information)
    sure = secured(x, found._replace(doubted=doubted), jnp.float32(0.0))
    known = np.asarray(sure.information)
    assert np.abs(np.asarray(sure.theta)[[1, 3]]).max() < 0.1 * np.linalg.norm(found.theta)
    assert known[1, 1] < 0.05 * before[1, 1]
    assert known[3, 3] < 0.05 * before[3, 3]
    for kept in (0, 2):
        assert known[kept, kept] > 0.3 * before[kept, kept]


@pytest.mark.slow
@pytest.mark.parametrize("times", [3.0, 30.0])
def test_rows_planted_far_out_make_no_direction_scarce_or_doubted(times):
    """A tenth of the pairs, longer than any other and against θ: once disputed, they no longer show its direction."""
    x, theta = normal_pairs()[0].copy(), np.array([1.5, -1.0, 0.5, 0.0, 0.5, -0.5])
    labels = draw_labels(np.random.default_rng(1), x, theta)
    x[: N // 10] = -times * np.linalg.norm(x, axis=1).max() * theta / np.linalg.norm(theta)
    labels[: N // 10] = 1.0
    x32 = jnp.asarray(x, jnp.float32)
    found = fit_differences(x32, jnp.asarray(labels, jnp.float32), jnp.float32(0.1))
    assert float(np.mean(np.asarray(found.undisputed)[: N // 10])) < 0.05
    assert not np.asarray(found.doubted).any()
    np.testing.assert_allclose(
        secured(x32, found, jnp.float32(0.1), believe_disputes=True).theta, found.theta, rtol=1e-3, atol=1e-3
    )
