"""Units do not matter: columns in units from 10⁻⁸ to 10⁸, 200 random configurations in either precision."""

from math import ceil

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from slow_parameters import slow

from robust_rlhf_jax._iterate import Status

from . import random_rows as rows

# Random configurations of each test.
ALL = 200
# Trimming decides between pairs: where two nearly tie, float32 may decide otherwise in other units.
NEAR_TIES = 5 / 200
# The fastest test runs on 50 of them among the fast tests.
shares = pytest.mark.parametrize("count", [50, pytest.param(ALL, marks=pytest.mark.slow)])
precisions = pytest.mark.parametrize(("wide", "tolerance"), [(False, 1e-2), (True, 1e-6)])


def violations(count, wide, tolerance, change):
    """The configurations that a change of units moves by more than the tolerance; `change` gives the movement."""
    moved = []
    with jax.enable_x64(wide):
        for seed in range(count):
            x, labels, targets, epsilon, rng = rows.configuration(seed)
            by = change(jnp.zeros(()).dtype, x, labels, targets, epsilon, rng)
            if not by <= tolerance:
                moved.append((seed, by))
    print(f"{count - len(moved)} of {count} configurations agree to {tolerance:g}; the others: {moved[:5]}")
    return moved


def units_of(rng):
    return 10.0 ** rng.uniform(-8, 8, rows.K)


@pytest.mark.slow
@precisions
@pytest.mark.parametrize("kind", ["covariance", "second_moment"])
def test_covariance_in_any_units_of_the_columns(kind, wide, tolerance):
    estimate = getattr(rows, kind)

    def change(dtype, x, labels, targets, epsilon, rng):
        scale = units_of(rng)
        plain = estimate(*rows.arrays(dtype, x, epsilon))
        other = estimate(*rows.arrays(dtype, x * scale, epsilon))
        assert plain.rank == other.rank
        assert plain.status == other.status
        return rows.relative_error(
            np.asarray(other.covariance, float) / scale[:, None] / scale, plain.covariance
        )

    # A filter's steps end at thresholds, where a near tie may fall otherwise.
    assert len(violations(ALL, wide, tolerance, change)) <= (0 if wide else 1)


@pytest.mark.slow
@precisions
def test_mean_with_known_covariance_in_any_units_of_the_columns(wide, tolerance):
    def change(dtype, x, labels, targets, epsilon, rng):
        scale, sigma = units_of(rng), np.cov(x, rowvar=False)
        plain = rows.known_mean(*rows.arrays(dtype, x, epsilon, sigma))
        other = rows.known_mean(*rows.arrays(dtype, x * scale, epsilon, sigma * scale * scale[:, None]))
        return np.max(np.abs(other / scale - plain) / np.sqrt(np.diag(sigma)))

    assert not violations(ALL, wide, tolerance, change)


@pytest.mark.parametrize(("wide", "tolerance"), [slow(False, 1e-2), (True, 1e-6)])
@shares
def test_mean_in_another_unit_and_basis(count, wide, tolerance):
    """Without a covariance only one unit for all columns, and rotations, are claimed."""

    def change(dtype, x, labels, targets, epsilon, rng):
        turn = np.linalg.qr(rng.normal(size=(rows.K, rows.K)))[0] * 10.0 ** rng.uniform(-8, 8)
        plain, other = (rows.mean(*rows.arrays(dtype, part, epsilon)) for part in (x, x @ turn))
        return np.max(np.abs(np.linalg.solve(turn.T, np.asarray(other, float)) - plain) / x.std(axis=0))

    assert not violations(count, wide, tolerance, change)


@pytest.mark.slow
@precisions
def test_regression_in_any_units(wide, tolerance):
    def change(dtype, x, labels, targets, epsilon, rng):
        scale, unit = units_of(rng), 10.0 ** rng.uniform(-8, 8)
        plain = rows.regression(*rows.arrays(dtype, x, targets, epsilon))
        other = rows.regression(*rows.arrays(dtype, x * scale, targets * unit, epsilon))
        return np.max(np.abs(np.asarray(other, float) * scale / unit - plain) * x.std(axis=0)) / targets.std()

    assert not violations(ALL, wide, tolerance, change)


@pytest.mark.slow
@precisions
@pytest.mark.parametrize("kind", ["trimmed", "reward"])
def test_likelihood_in_another_unit(kind, wide, tolerance):
    """The ball is one in the features' own unit: it scales with them."""
    estimate = getattr(rows, kind)

    def change(dtype, x, labels, targets, epsilon, rng):
        unit = 10.0 ** rng.uniform(-8, 8)
        plain, other = (
            estimate(*rows.arrays(dtype, x * by, labels, epsilon, 5.0 / by)) for by in (1.0, unit)
        )
        plain, other = (getattr(found, "fit", found).theta for found in (plain, other))
        return np.max(np.abs(np.asarray(other, float) * unit - plain) / 5.0)

    assert not violations(ALL, wide, tolerance, change)


@pytest.mark.slow
@precisions
@pytest.mark.parametrize("kind", ["trimmed", "reward"])
def test_likelihood_in_any_units_of_the_columns_where_no_ball_binds(kind, wide, tolerance):
    estimate = getattr(rows, kind)

    def change(dtype, x, labels, targets, epsilon, rng):
        scale = units_of(rng)
        plain, other = (
            estimate(*rows.arrays(dtype, x * by, labels, epsilon, 1e12)) for by in (np.ones(rows.K), scale)
        )
        plain, other = (getattr(found, "fit", found) for found in (plain, other))
        rescaled, theta = np.asarray(other.theta, float) * scale, np.asarray(plain.theta, float)
        # Where labels are separable the maximum lies at no finite length: probabilities agree, lengths need not.
        if plain.status == other.status == Status.SEPARABLE:
            return np.max(np.abs(np.tanh(0.5 * x @ rescaled) - np.tanh(0.5 * x @ theta)))
        return np.max(np.abs(rescaled - theta)) / (1.0 + np.linalg.norm(theta))

    assert len(violations(ALL, wide, tolerance, change)) <= (0 if wide else ceil(NEAR_TIES * ALL))


@pytest.mark.slow
def test_where_units_far_apart_move_a_bound_fit_its_labels_are_separable():
    """Columns 10¹² apart, a ball that binds: what moves in another unit explains every pair to rounding."""
    moved = 0
    with jax.enable_x64(True):
        for seed in range(ALL):
            x, labels, _, epsilon, rng = rows.configuration(seed)
            x = x * np.r_[1e-6, 1e6, 10.0 ** rng.uniform(-6, 6)]
            unit, radius = 10.0 ** rng.uniform(-4, 4), 1e6
            for estimate in (rows.trimmed, rows.reward):
                plain, other = (
                    getattr(found, "fit", found)
                    for found in (
                        estimate(*rows.arrays(jnp.float64, x * by, labels, epsilon, radius / by))
                        for by in (1.0, unit)
                    )
                )
                if np.max(np.abs(other.theta * unit - plain.theta)) > 1e-6 * radius:
                    moved += 1
                    assert plain.status == other.status == Status.SEPARABLE
    print(f"{moved} of {2 * ALL} fits moved, all of them to separable labels")
    assert moved <= 10
