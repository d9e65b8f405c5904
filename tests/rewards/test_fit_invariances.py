"""What must not matter to the robust fit: order, side, units, basis, batches, precision, and a compilation before."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_parameters import slow_but_few

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.rewards import fit_differences

from .worlds import K, N, fitted, normal_pairs, planted, rare_pairs, sparse_pairs

WORLDS = {
    "normal": lambda: (*normal_pairs(0), 0.1),
    "rare": lambda: (*rare_pairs(0), 0.1),
    "sparse": lambda: (*sparse_pairs(0), 0.2),
    "near": lambda: (*planted(*normal_pairs(0), 0.1, 3.0)[:2], 0.1),
    "far": lambda: (*planted(*normal_pairs(1), 0.1, 20.0)[:2], 0.1),
    "one cell": lambda: one_cell(),
}
ATTACKED = ("near", "far")
world = st.sampled_from(sorted(WORLDS))


def one_cell():
    x, labels = normal_pairs(2)
    x[7, 2] = 1e10
    return x, labels, 0.1


@cache
def as_drawn(name, wide=False):
    """The fit of a world as it is, once for all that is compared with it."""
    with jax.enable_x64(wide):
        return fitted(*WORLDS[name](), jnp.float64 if wide else jnp.float32)


def same_decisions(found, other, order=slice(None), handful=0.005):
    """The same pairs left out, but for a handful where a threshold falls between neighbours.

    Pairs that tie at the threshold share what is left of the quota: some per cent of weight each, which is no decision.
    """
    here, there = np.asarray(found.weights)[order], np.asarray(other.weights)
    assert np.mean((here < 0.5) != (there < 0.5)) <= handful
    assert np.mean(np.abs(here - there)) <= 0.01
    assert found.rank == other.rank
    assert found.status == other.status
    assert (found.epsilon == 0) == (other.epsilon == 0)


def same_predictions(x, theta, other_x, other, tolerance):
    """Probabilities of the labels at the pairs."""
    chance, changed = (
        1 / (1 + np.exp(-np.clip(a @ np.asarray(t, float), -50, 50)))
        for a, t in ((x, theta), (other_x, other))
    )
    np.testing.assert_allclose(changed, chance, atol=tolerance)


@pytest.mark.slow
@settings(max_examples=6)
@given(world, st.integers(0, 2**16))
def test_order_does_not_matter(name, seed):
    x, labels, epsilon = WORLDS[name]()
    order = np.random.default_rng(seed).permutation(N)
    found, other = as_drawn(name), fitted(x[order], labels[order], epsilon)
    same_decisions(found, other, order)
    same_predictions(x, found.theta, x, other.theta, 0.005)


@pytest.mark.slow
@settings(max_examples=6)
@given(world, st.integers(0, 2**16))
def test_which_option_comes_first_does_not_matter(name, seed):
    x, labels, epsilon = WORLDS[name]()
    flips = np.random.default_rng(seed).choice([-1.0, 1.0], N)
    found, other = as_drawn(name), fitted(flips[:, None] * x, flips * labels, epsilon)
    same_decisions(found, other)
    same_predictions(x, found.theta, x, other.theta, 0.005)


@pytest.mark.slow
@settings(max_examples=6)
@given(world, st.lists(st.integers(-20, 20), min_size=K, max_size=K))
def test_powers_of_two_as_units_change_no_bit(name, powers):
    x, labels, epsilon = WORLDS[name]()
    scale = 2.0 ** np.asarray(powers)
    found, other = as_drawn(name), fitted(x * scale, labels, epsilon)
    np.testing.assert_array_equal(np.asarray(other.theta) * scale, found.theta)
    np.testing.assert_array_equal(other.weights, found.weights)
    np.testing.assert_array_equal(other.suspicion, found.suspicion)
    assert other.epsilon == found.epsilon


units = st.lists(st.floats(-8, 8), min_size=K, max_size=K)


@pytest.mark.slow
@pytest.mark.parametrize("wide", [False, True])
@settings(max_examples=5)
@given(name=world, powers=units)
def test_units_do_not_matter(wide, name, powers):
    x, labels, epsilon = WORLDS[name]()
    scale, dtype = 10.0 ** np.asarray(powers), jnp.float64 if wide else jnp.float32
    with jax.enable_x64(wide):
        found, other = as_drawn(name, wide), fitted(x * scale, labels, epsilon, dtype)
        same_decisions(found, other)
        same_predictions(x, found.theta, x * scale, other.theta, 1e-6 if wide else 0.005)


@pytest.mark.slow
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("name", slow_but_few(["normal", "rare", "sparse", *ATTACKED], 1))
@pytest.mark.parametrize("kind", ["rotation", "invertible"])
def test_the_basis_does_not_matter(kind, name, wide):
    """But for the prior, which is that of standardised columns, and other columns have other spreads: at 1,000 pairs it
    moves no probability by .06, and no decision but of the handful that `same_decisions` allows. (.055 was seen, of two
    pairs, where θ is a mean of explanations.)
    """
    x, labels, epsilon = WORLDS[name]()
    rng = np.random.default_rng(3)
    change, other_turn = (np.linalg.qr(rng.normal(size=(K, K)))[0] for _ in range(2))
    if kind == "invertible":
        change = change * np.geomspace(0.2, 5.0, K) @ other_turn
    dtype = jnp.float64 if wide else jnp.float32
    with jax.enable_x64(wide):
        found, other = as_drawn(name, wide), fitted(x @ change, labels, epsilon, dtype)
        same_decisions(found, other, handful=0.01)
        same_predictions(x, found.theta, x @ change, other.theta, 0.06)


@pytest.mark.slow
def test_copies_and_constants_of_columns():
    x, labels = normal_pairs(0)
    alone = x.copy()
    alone[:, 5] = 0.0
    for extra, rank in ((0.0, 5), (x[:, 4], 5), (x[:, 3] - 2 * x[:, 4], 5), (1.0, 6)):
        other = alone.copy()
        other[:, 5] = extra
        for epsilon in (0.0, 0.1):
            found = fitted(other, labels, epsilon)
            assert found.rank == rank
            np.testing.assert_array_equal(found.weights, 1.0)
            if rank == 5:
                same_predictions(alone, fitted(alone, labels, epsilon).theta, other, found.theta, 0.01)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(WORLDS))
def test_precisions_agree(name):
    x, _, _ = WORLDS[name]()
    single = as_drawn(name)
    with jax.enable_x64(True):
        double = as_drawn(name, wide=True)
        assert all(a.dtype == jnp.float64 for a in (double.theta, double.weights, double.epsilon))
        same_decisions(single, double)
        same_predictions(x, single.theta, x, double.theta, 0.005)


def batch_of_worlds():
    parts = [WORLDS[name]() for name in ("normal", "near", "rare", "far")]
    return [jnp.asarray(np.stack(part), jnp.float32) for part in zip(*parts, strict=True)]


@pytest.fixture(scope="module")
def many():
    return jax.jit(jax.vmap(fit_differences))


@pytest.fixture(scope="module")
def clean_lanes(many):
    # On the host: there, taking a lane out of each field compiles nothing.
    return jax.device_get(many(*batch_of_worlds()))


@pytest.mark.slow
def test_a_batch_is_a_loop(clean_lanes):
    batch, found = batch_of_worlds(), clean_lanes
    for i in range(4):
        alone = fit_differences(*(part[i] for part in batch))
        lane = jax.tree.map(lambda a, i=i: a[i], found)
        same_decisions(lane, alone)
        np.testing.assert_allclose(lane.theta, alone.theta, rtol=0.01, atol=0.005)


@pytest.mark.slow
def test_a_lane_that_is_not_finite_leaves_the_others_alone(many, clean_lanes):
    batch = batch_of_worlds()
    batch[0] = batch[0].at[1, 3, 2].set(jnp.nan)
    found = jax.device_get(many(*batch))
    assert found.status.tolist() == [Status.CONVERGED, Status.NONFINITE, Status.CONVERGED, Status.CONVERGED]
    others = np.array([0, 2, 3])
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a[others], b[others]), found, clean_lanes)


@pytest.mark.slow
def test_a_new_epsilon_and_new_data_compile_nothing(count_compilations):
    first = WORLDS["normal"]()
    jax.block_until_ready(fitted(*first))
    later = [[jnp.asarray(a, jnp.float32) for a in WORLDS[name]()] for name in ("far", "rare")]
    later.append([*later[0][:2], jnp.zeros((), jnp.float32)])
    with count_compilations() as count:
        for arguments in later:
            jax.block_until_ready(fit_differences(*arguments))
    assert count.compiled == []
    assert count.traced == []
