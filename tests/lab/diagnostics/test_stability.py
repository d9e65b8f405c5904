"""δ of a weighted set against all its parts and all directions of the plane."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.lab.diagnostics import stability
from robust_rlhf_jax.moments import filter_mean


def brute_force(x, left_out, mean):
    """(largest |mean'|, largest |second moment' − 1|) over all parts that lack `left_out` rows, exactly."""
    shifts, spreads = [], []
    for part in itertools.combinations(range(len(x)), len(x) - left_out):
        rows = x[list(part)] - mean
        shifts.append(np.linalg.norm(rows.mean(axis=0)))
        spreads.append(np.abs(np.linalg.eigvalsh(rows.T @ rows / len(rows)) - 1.0).max())
    return max(shifts), max(spreads)


@pytest.mark.parametrize("seed", range(6))
def test_between_both_ends_of_all_subsets(seed, x64):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(12, 2)) * (1.0, 1.5) + (0.3 if seed % 2 else 0.0)
    mean = np.zeros(2) if seed % 2 else x.mean(axis=0)
    shift, spread = brute_force(x, 2, mean)
    delta = max(shift, np.sqrt(spread / 6))
    found = stability(jnp.asarray(x), 1 / 6, mean=jnp.asarray(mean))
    assert found.shift <= shift + 1e-12
    assert found.spread <= spread + 1e-12
    assert 0.98 * delta <= found.lower <= delta + 1e-12
    assert delta <= found.upper
    assert shift <= found.shift_bound
    assert spread <= found.spread_bound
    np.testing.assert_allclose(np.linalg.norm(found.direction), 1.0)


@pytest.mark.slow
def test_in_one_dimension_it_is_exact(x64):
    x = np.random.default_rng(7).standard_t(4, size=40)
    y = np.sort(x - x.mean())
    squares = np.sort(y**2)
    shift = max(y[4:].mean(), -y[:-4].mean())
    spread = max(squares[4:].mean() - 1, 1 - squares[:-4].mean())
    found = stability(jnp.asarray(x)[:, None], 0.1)
    np.testing.assert_allclose([found.shift, found.spread], [shift, spread], rtol=1e-10)
    np.testing.assert_allclose(found.lower, max(shift, np.sqrt(0.1 * spread)), rtol=1e-10)


@pytest.mark.slow
def test_whole_weights_are_copies_and_zero_weights_are_absent(x64):
    x = np.random.default_rng(8).normal(size=(20, 3))
    counts = np.random.default_rng(9).integers(0, 3, 20)
    copies, weighted = (
        stability(jnp.asarray(np.repeat(x, counts, axis=0)), 0.1),
        stability(jnp.asarray(x), 0.1, weights=jnp.asarray(counts)),
    )
    for a, b in ((copies.lower, weighted.lower), (copies.upper, weighted.upper)):
        np.testing.assert_allclose(a, b, rtol=1e-9)


@pytest.mark.slow
def test_a_covariance_whitens_and_null_directions_do_not_count(x64):
    rng = np.random.default_rng(10)
    z, mix = rng.normal(size=(200, 3)), rng.normal(size=(4, 3))
    plain = stability(jnp.asarray(z), 0.1, covariance=jnp.eye(3))
    mixed = stability(jnp.asarray(z @ mix.T), 0.1, covariance=jnp.asarray(mix @ mix.T))
    for name in ("lower", "upper", "shift", "spread"):
        np.testing.assert_allclose(getattr(mixed, name), getattr(plain, name), rtol=1e-7)


@pytest.mark.slow
def test_planted_rows_are_unstable_until_a_filter_took_them(x64):
    """Clean normal rows have δ = O(ε√log 1/ε); planted ones a multiple of that, what the filter leaves not."""
    rng = np.random.default_rng(11)
    x = rng.normal(size=(4000, 5))
    clean = stability(jnp.asarray(x), 0.1)
    x[:400] = 4.0
    x = jnp.asarray(x)
    weights = filter_mean(x, 0.1, covariance=jnp.eye(5)).weights
    planted, filtered = stability(x, 0.1), stability(x, 0.1, weights=weights)
    assert clean.lower < 1.5 * 0.1 * np.sqrt(2 * np.log(10)) + 0.1
    assert planted.lower > 2 * clean.upper > 2 * clean.lower
    assert filtered.lower < 1.5 * clean.lower


@pytest.mark.parametrize(
    ("x", "epsilon", "weights", "message"),
    [
        (np.ones(3, np.float32), 0.1, None, r"shape \[n, d\]"),
        (np.ones((3, 1), np.float32), 0.5, None, r"outside \[0, 0\.5\)"),
        (np.ones((3, 1), np.float32), 0, None, "epsilon=0"),
        (np.ones((3, 1), np.float32), 0.1, np.ones(2), r"weights has shape \(2,\)"),
        (np.ones((3, 1), np.float32), 0.1, np.zeros(3), "not all be 0"),
        (np.ones((3, 1), np.float32), 0.1, np.array([1.0, -1.0, 1.0]), "finite and at least 0"),
        (np.ones((3, 1), np.float32), 0.1, np.array([1.0, np.nan, 1.0]), "finite and at least 0"),
    ],
)
def test_bad_arguments_are_named(x, epsilon, weights, message):
    with pytest.raises(ValueError, match=message):
        stability(x, epsilon, weights=weights)
