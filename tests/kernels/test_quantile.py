"""Bit bisection against sorting: every value, tie, sign and dtype."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st

from robust_rlhf_jax.kernels.quantile import keep_top, upper_threshold, upper_thresholds

# Jitted, so that hundreds of examples of the same shape share one program.
threshold_of = jax.jit(upper_threshold)
thresholds_of = jax.jit(upper_thresholds)
kept_by = jax.jit(keep_top)


def sorted_threshold(x, weights, mass):
    """The definition by a sort: the largest value t of x with Σ w·1[x ≥ t] ≥ mass, −∞ if there is none."""
    for t in np.sort(x)[::-1]:
        if weights[x >= t].sum() >= mass:
            return t
    return -np.inf


def greedy_knapsack(x, capacity, mass):
    """Σ w x of the fractional knapsack: fill from the largest value down."""
    left, total = mass, 0.0
    for i in np.argsort(-x, kind="stable"):
        take = min(capacity[i], left)
        total, left = total + take * x[i], left - take
    return total


N = 12
grid_values = st.lists(st.integers(-3, 3), min_size=N, max_size=N)  # few values: many ties
grid_weights = st.lists(st.integers(0, 4), min_size=N, max_size=N)  # quarters: sums are exact in float32
finite = st.floats(allow_nan=False, allow_infinity=False, width=32)


@pytest.mark.parametrize("wide", [False, True])
@given(values=grid_values, weights=grid_weights, quarters=st.integers(1, 4 * N + 2))
def test_threshold_with_ties_and_weights(wide, values, weights, quarters):
    x, w, mass = np.array(values, float), np.array(weights) / 4, quarters / 4
    with jax.enable_x64(wide):
        found = np.asarray(threshold_of(jnp.asarray(x), jnp.asarray(w), jnp.asarray(mass)))
        assert found.dtype == (jnp.float64 if wide else jnp.float32)
    assert found == sorted_threshold(x, w, mass)


@given(values=st.lists(finite, min_size=N, max_size=N), rank=st.integers(1, N))
def test_threshold_is_an_order_statistic_in_float32(values, rank):
    x = np.array(values, np.float32)
    found = np.asarray(threshold_of(jnp.asarray(x), jnp.ones(N), jnp.asarray(float(rank))))
    # Subnormal numbers compare as zero on a CPU that flushes them, so they are told apart by their bits.
    assert found.tobytes() in {v.tobytes() for v in x}
    assert found == np.sort(x)[::-1][rank - 1]


@pytest.mark.parametrize("wide", [False, True])
@given(values=st.lists(st.integers(0, 3), min_size=4 * N, max_size=4 * N), share=st.floats(0, 1))
def test_thresholds_of_columns_are_those_of_each(wide, values, share):
    x = np.array(values, float).reshape(N, 4)
    count = share * np.sum(x > 0, axis=0)
    with jax.enable_x64(wide):
        found = np.asarray(thresholds_of(jnp.asarray(x), jnp.asarray(count)))
        counts = np.asarray(jnp.asarray(count))
        assert found.dtype == (jnp.float64 if wide else jnp.float32)
    for column, mass, threshold in zip(x.T, counts, found, strict=True):
        expected = sorted_threshold(column, column > 0, mass) if mass > 0 else np.max(column)
        assert threshold == expected


@given(values=st.lists(st.floats(-1e300, 1e300), min_size=N, max_size=N), rank=st.integers(1, N))
def test_threshold_is_an_order_statistic_in_float64(values, rank):
    x = np.array(values)
    with jax.enable_x64(True):
        found = threshold_of(jnp.asarray(x), jnp.ones(N), jnp.asarray(float(rank)))
        assert np.asarray(found) == np.sort(x)[::-1][rank - 1]


def test_threshold_on_many_random_weights(x64):
    rng = np.random.default_rng(0)
    x = rng.normal(size=500).round(1)
    weights = rng.integers(0, 16, 500) / 16
    for mass in rng.integers(1, int(16 * weights.sum()), 20) / 16:
        assert threshold_of(jnp.asarray(x), jnp.asarray(weights), mass) == sorted_threshold(x, weights, mass)


def test_neighbouring_floats_are_told_apart():
    for base in (1.0, -1.0, 1e-30, -1e30):
        low = np.float32(base)
        high = np.nextafter(low, np.float32(np.inf))
        x = jnp.asarray(np.array([low, high, low]))
        assert threshold_of(x, jnp.ones(3), 1.0) == high
        assert threshold_of(x, jnp.ones(3), 2.0) == low


def test_signed_zeros_are_one_value():
    x = jnp.array([-0.0, 0.0, -0.0, 1.0])
    for mass in (2.0, 3.0, 4.0):
        assert threshold_of(x, jnp.ones(4), mass) == 0.0
    np.testing.assert_allclose(kept_by(x, jnp.ones(4), 2.5), [0.5, 0.5, 0.5, 1.0], rtol=1e-6)
    np.testing.assert_allclose(kept_by(-x, jnp.ones(4), 1.5), [0.5, 0.5, 0.5, 0.0], rtol=1e-6)


def test_infinities_are_values():
    x = jnp.array([-jnp.inf, 0.0, jnp.inf])
    assert [float(threshold_of(x, jnp.ones(3), m)) for m in (1.0, 2.0, 3.0)] == [np.inf, 0.0, -np.inf]


def test_no_mass_gives_the_largest_value():
    """Every t ≤ max x satisfies Σ w·1[x ≥ t] ≥ 0, so the largest of the values is the answer."""
    assert threshold_of(jnp.array([1.0, 4.0, 2.0]), jnp.ones(3), 0.0) == 4.0
    assert threshold_of(jnp.array([-1.0, -4.0]), jnp.ones(2), 0.0) == -1.0
    np.testing.assert_array_equal(kept_by(jnp.array([1.0, 4.0, 2.0]), jnp.ones(3), 0.0), 0.0)


def test_mass_above_the_total_keeps_everything():
    x, capacity = jnp.array([3.0, -1.0, 2.0]), jnp.array([0.5, 1.0, 0.25])
    assert threshold_of(x, capacity, 1.76) == -np.inf
    assert threshold_of(x, capacity, 1.75) == -1.0
    np.testing.assert_array_equal(kept_by(x, capacity, 100.0), capacity)
    np.testing.assert_array_equal(kept_by(x, capacity, 1.75), capacity)


@given(values=grid_values, weights=grid_weights, share=st.integers(0, 8))
def test_keep_top_solves_the_knapsack(values, weights, share):
    x, capacity = np.array(values, float), np.array(weights) / 4
    mass = capacity.sum() * share / 8
    with jax.enable_x64(True):
        kept = np.asarray(kept_by(jnp.asarray(x), jnp.asarray(capacity), jnp.asarray(mass)))
    assert (kept >= 0).all()
    assert (kept <= capacity).all()
    np.testing.assert_allclose(kept.sum(), mass, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(kept @ x, greedy_knapsack(x, capacity, mass), rtol=1e-12, atol=1e-12)


@given(values=grid_values, weights=grid_weights, share=st.integers(1, 8), seed=st.integers(0, 99))
def test_keep_top_does_not_depend_on_the_order_of_rows(values, weights, share, seed):
    x, capacity = np.array(values, np.float32), np.array(weights, np.float32) / 4
    mass = capacity.sum() * share / 8
    order = np.random.default_rng(seed).permutation(N)
    kept = np.asarray(kept_by(jnp.asarray(x), jnp.asarray(capacity), mass))
    shuffled = kept_by(jnp.asarray(x[order]), jnp.asarray(capacity[order]), mass)
    np.testing.assert_array_equal(shuffled, kept[order])


@pytest.mark.slow
def test_keep_top_against_linear_programming(x64):
    rng = np.random.default_rng(1)
    for _ in range(5):
        x, capacity = rng.normal(size=30), rng.uniform(0, 1, 30)
        mass = 0.6 * capacity.sum()
        program = scipy.optimize.linprog(
            -x,
            A_eq=np.ones((1, 30)),
            b_eq=[mass],
            bounds=list(zip(np.zeros(30), capacity, strict=True)),
            method="highs",
        )
        np.testing.assert_allclose(
            keep_top(jnp.asarray(x), jnp.asarray(capacity), mass), program.x, atol=1e-12
        )


def test_all_tied_is_the_uniform_weight():
    np.testing.assert_allclose(kept_by(jnp.zeros(8), jnp.ones(8), 6.0), 0.75, rtol=1e-6)


@pytest.mark.parametrize("n", [1000, 100_000])
def test_float32_mass_is_kept(n):
    """The largest n − εn values with unit capacity: the trimming that the estimators do."""
    x = np.random.default_rng(2).normal(size=n).astype(np.float32)
    kept = np.asarray(kept_by(jnp.asarray(x), jnp.ones(n), 0.9 * n))
    np.testing.assert_allclose(kept.sum(), 0.9 * n, rtol=1e-6)
    cut = np.sort(x)[::-1][int(0.9 * n) - 1]
    np.testing.assert_array_equal(kept[x > cut], 1.0)
    np.testing.assert_array_equal(kept[x < cut], 0.0)


def test_quantiles_batch():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(4, 50)).astype(np.float32)
    mass = np.array([1.0, 10.0, 25.0, 51.0], np.float32)
    found = jax.jit(jax.vmap(upper_threshold, in_axes=(0, None, 0)))(
        jnp.asarray(x), jnp.ones(50), jnp.asarray(mass)
    )
    expected = [sorted_threshold(row, np.ones(50), m) for row, m in zip(x, mass, strict=True)]
    np.testing.assert_array_equal(found, expected)


def test_an_infinitely_low_value_is_kept_no_more_than_whole():
    """More mass than all capacities: the threshold −∞ ties with values of −∞, whose share must not exceed 1."""
    capacity = jnp.array([0.5, 0.25, 1.0])
    np.testing.assert_array_equal(kept_by(jnp.array([-jnp.inf, 2.0, -jnp.inf]), capacity, 5.0), capacity)


@pytest.mark.parametrize("mass", [0.25, 0.5, 0.75])
def test_a_mass_below_the_first_weight_gives_the_largest_value(mass):
    """Also where that value weighs nothing: then the first that weighs anything."""
    x = jnp.array([1.0, 4.0, 2.0])
    assert threshold_of(x, jnp.ones(3), mass) == 4.0
    assert threshold_of(x, jnp.array([1.0, 0.0, 1.0]), mass) == 2.0
    np.testing.assert_array_equal(kept_by(x, jnp.ones(3), mass), [0.0, mass, 0.0])
