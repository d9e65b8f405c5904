"""Table 1 as numbers: exponents, caps, what grows with what."""

import numpy as np
import pytest

from robust_rlhf_jax.lab.diagnostics import (
    EXPONENTS,
    condition_number_bound,
    coverage_ratio_bound,
    lower_bound,
    oracle_calls,
    sampling_term,
    uniform_bound,
)

SIZES = {"horizon": 4, "dim": 6}
BOUNDS = {
    "uniform": lambda e, **more: uniform_bound(e, xi=0.5, **SIZES, **more),
    "condition_number": lambda e, **more: condition_number_bound(e, alpha=2.0, kappa=5.0, **SIZES, **more),
    "coverage_ratio": lambda e, **more: coverage_ratio_bound(e, nu=3.0, kappa=5.0, **SIZES, **more),
}


@pytest.mark.parametrize("name", list(BOUNDS))
def test_exponent_is_the_slope_for_small_epsilon(x64, name):
    small, smaller = np.asarray(BOUNDS[name](1e-24)), np.asarray(BOUNDS[name](1e-28))
    assert np.log10(small / smaller) / 4 == pytest.approx(EXPONENTS[name], abs=1e-3)


@pytest.mark.parametrize("name", list(BOUNDS))
def test_no_corruption_costs_nothing_and_the_cap_holds(name):
    assert float(BOUNDS[name](0.0)) == 0.0
    assert float(BOUNDS[name](0.4, largest=1.0)) == 1.0


@pytest.mark.parametrize("epsilon", [-0.1, 0.5, np.nan, np.array([0.1, 0.7])])
def test_shares_outside_of_zero_and_a_half_are_refused(epsilon):
    for bound in (*BOUNDS.values(), lambda e: lower_bound(e, **SIZES), lambda e: oracle_calls("uniform", e)):
        with pytest.raises(ValueError, match=r"outside \[0, 0\.5\)"):
            bound(epsilon)


@pytest.mark.parametrize("xi", [0.0, -1.0, np.nan])
def test_coverage_that_is_not_positive_is_refused(xi):
    with pytest.raises(ValueError, match=r"xi=.* must be positive and finite\."):
        uniform_bound(0.1, xi=xi, **SIZES)


def test_values_by_hand():
    assert float(uniform_bound(0.1, xi=0.5, horizon=4, dim=4)) == pytest.approx(0.1 * (64 + 4) / 0.5)
    assert float(coverage_ratio_bound(0.04, nu=2.0, kappa=4.0, horizon=3, dim=4)) == pytest.approx(115.2)
    found = condition_number_bound(0.01, alpha=1.0, kappa=4.0, horizon=1, dim=1)
    assert float(found) == pytest.approx(4 * 0.1 + 0.1**0.5)
    assert float(lower_bound(0.1, horizon=3, dim=4)) == pytest.approx(1.2)
    assert float(lower_bound(0.1, horizon=3, dim=4, largest=1.0)) == 1.0


def test_finite_data_add_the_sampling_term():
    term = float(sampling_term(1000, alpha=2.0, kappa=5.0, **SIZES))
    more = {"alpha": 2.0, "kappa": 5.0, "n_pairs": 1000, **SIZES}
    assert float(condition_number_bound(0.0, **more)) == pytest.approx(term)
    assert float(coverage_ratio_bound(0.0, nu=3.0, **more)) == pytest.approx(term)
    assert float(sampling_term(4000, alpha=2.0, kappa=5.0, **SIZES)) < 0.6 * term


def test_sampling_term_needs_alpha():
    with pytest.raises(ValueError, match="n_pairs=10 without alpha"):
        coverage_ratio_bound(0.1, nu=3.0, kappa=5.0, n_pairs=10, **SIZES)


def test_calls_of_table_1_by_hand():
    assert float(oracle_calls("uniform", 0.1)) == 1.0
    assert float(oracle_calls("condition_number", 0.1, horizon=4, dim=2)) == pytest.approx(8 * 32 / 1e-3)
    assert float(oracle_calls("coverage_ratio", 0.1, nu=4.0)) == pytest.approx(2.5)


def test_printed_calls_of_row_two_lack_a_power_of_the_horizon():
    """Its proof takes T·K = (MD/ε)·(M²d³/ε²) with M = H√d and D = √(Hd): H^{7/2}d⁵/ε³, not H^{3/2}d⁵/ε³."""
    horizon, dim, epsilon = 5, 3, 0.1
    most, radius = horizon * dim**0.5, (horizon * dim) ** 0.5
    product = (most * radius / epsilon) * (most**2 * dim**3 / epsilon**2)
    printed = float(oracle_calls("condition_number", epsilon, horizon=horizon, dim=dim))
    assert product == pytest.approx(horizon**2 * printed, rel=1e-5)


def test_calls_name_what_they_miss():
    with pytest.raises(ValueError, match="'condition_number' needs dim"):
        oracle_calls("condition_number", 0.1, horizon=3)
    with pytest.raises(ValueError, match="needs nu"):
        oracle_calls("coverage_ratio", 0.1)
    with pytest.raises(ValueError, match="one of uniform, condition_number"):
        oracle_calls("none", 0.1)
