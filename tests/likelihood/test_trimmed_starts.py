"""Where Algorithm 2 starts: given, random and robust starts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.likelihood.trimmed import (
    _random_subset_starts,
    row_normalised_start,
)
from robust_rlhf_jax.moments.scaled_span import typical_share

from .trimmed_fits import ZEROS, fit, fit_from, likelihoods, numpy_newton, problem_of, sample


@pytest.mark.slow
def test_more_starts_never_lower_the_trimmed_likelihood(x64):
    for seed in range(4):
        x, labels, _ = sample(share=0.15, seed=seed)
        single = fit_from(ZEROS, x, labels, 0.15)
        double = fit(x, labels, 0.15)
        many = fit(x, labels, 0.15, n_random_starts=6, key=jax.random.key(seed))
        assert single.start == 0
        assert single.objective <= double.objective + 1e-14
        assert double.objective <= many.objective + 1e-12
        assert 0 <= many.start < 8
        # A start that ended well is recognised wherever it stands.
        again = fit_from(jnp.stack([-many.theta, many.theta]), x, labels, 0.15)
        assert again.start == 1
        np.testing.assert_allclose(again.objective, many.objective, rtol=1e-9)
        assert again.rounds <= 2


@pytest.mark.slow
def test_every_start_ends_in_the_ball(x64):
    """A start outside the ball is no excuse for an answer outside."""
    x, _, truth = sample(seed=6)
    labels = np.sign(x @ truth)
    found = fit_from(30.0 * np.stack([truth, truth]), x, labels, 0.1, radius=1.0)
    assert np.linalg.norm(found.theta) <= 1 + 1e-9


@pytest.mark.slow
def test_the_robust_start_weighs_rows_by_one_over_their_length(x64):
    x, labels, _ = sample()
    rng = np.random.default_rng(4)
    capacity, length = rng.uniform(0.2, 1.0, 200), rng.uniform(0.5, 3.0, 200)
    length[5] = 0.0  # of a row of zeros
    x[5] = 0.0
    expected = numpy_newton(x, labels, 20.0, weights=capacity / np.where(length > 0, length, 1.0))
    found = plain_start(problem_of(x, labels, capacity), jnp.asarray(length))
    np.testing.assert_allclose(found, expected, rtol=1e-7)


plain_start = jax.jit(row_normalised_start)


random_starts = jax.jit(_random_subset_starts, static_argnums=2)


@pytest.mark.slow
def test_random_starts_are_fits_to_a_tenth_of_the_pairs(x64):
    """With their capacities."""
    x, labels, _ = sample()
    capacity = np.random.default_rng(5).uniform(0.2, 1.0, 200)
    found = random_starts(jax.random.key(0), problem_of(x, labels, capacity), 3)
    for theta, key in zip(found, jax.random.split(jax.random.key(0), 3), strict=True):
        picked = np.asarray(jax.random.bernoulli(key, 0.1, (200,)))
        assert 10 <= picked.sum() <= 35
        expected = numpy_newton(x, labels, 20.0, weights=picked * capacity)
        np.testing.assert_allclose(theta, expected, rtol=1e-6)


@pytest.mark.slow
def test_a_random_start_from_no_pair_is_one_from_all(x64):
    """One from a single pair, of little weight too, is as long as the ball allows."""
    x, labels, _ = sample(n=9, k=2, seed=1)
    capacity = np.full(9, 0.4)
    x[4:], labels[4:] = x[:5], -labels[:5]  # contradictions, so that the fit to all is short
    found = random_starts(jax.random.key(0), problem_of(x, labels, capacity), 20)
    picked = [
        np.flatnonzero(jax.random.bernoulli(key, 0.1, (9,)))
        for key in jax.random.split(jax.random.key(0), 20)
    ]
    assert {0, 1} <= {len(rows) for rows in picked}
    plain = numpy_newton(x, labels, 20.0)
    for theta, rows in zip(found, picked, strict=True):
        if len(rows) == 0:
            np.testing.assert_allclose(theta, plain, atol=1e-6)
        if len(rows) == 1:
            along = (labels[:, None] * x)[rows[0]]
            np.testing.assert_allclose(theta, 20.0 * along / np.linalg.norm(along), rtol=1e-3)


@pytest.mark.slow
def test_without_rounds_the_best_start_comes_back(x64):
    """As it was given, in the ball and in the units of x, with the pairs that it keeps."""
    x, labels, truth = sample(share=0.15)
    starts = np.stack([-truth, 3.0 * truth])
    for unit in (1.0, 64.0):
        found = fit_from(starts / unit, x * unit, labels, 0.15, 4.0 / unit, max_rounds=0)
        assert (int(found.start), int(found.rounds), int(found.newton_steps)) == (1, 0, 0)
        np.testing.assert_allclose(found.theta, 2.0 * truth / unit, rtol=1e-12)  # ‖3θ★‖ = 6
        values = likelihoods(2.0 * truth, x, labels)
        np.testing.assert_allclose(found.objective, np.sort(values)[-170:].mean(), rtol=1e-12)
        np.testing.assert_array_equal(found.weights, values >= np.sort(values)[-170])
        assert found.gradient_norm == np.inf


@pytest.mark.slow
def test_a_start_that_is_not_a_number_loses(x64):
    x, labels, _ = sample()
    found = fit_from(np.stack([np.full(4, np.nan), np.zeros(4)]), x, labels, 0.1)
    assert (int(found.start), int(found.status)) == (1, Status.CONVERGED)
    assert np.isfinite(found.theta).all()


@pytest.mark.slow
def test_the_robust_start_is_made_by_default(x64):
    """Where rows are replaced it ends higher than θ₁ = 0 does."""
    for seed in range(8):
        x, labels, _ = sample(share=0.2, seed=seed)
        both, alone = fit(x, labels, 0.2), fit_from(ZEROS, x, labels, 0.2)
        if both.objective > alone.objective + 1e-9:
            assert both.start == 1
            return
    pytest.fail("no sample on which the start matters")


@pytest.mark.slow
def test_the_robust_start_whitens_rows_under_their_capacities(x64):
    """Against NumPy: half of the rows, with columns of other sizes, count a hundredth."""
    x, labels, _ = sample()
    x[::2] *= [5.0, 0.2, 1.0, 1.0]
    capacity = np.where(np.arange(200) % 2, 1.0, 0.01)
    share = capacity * typical_share(jnp.asarray(x))
    moment = (x.T * share) @ x / share.sum()
    lengths = np.sqrt(np.sum(x @ np.linalg.inv(moment) * x, axis=1))
    found = fit(x, labels, 0.0, weights=capacity, max_rounds=0)
    assert found.start == 1
    expected = numpy_newton(x, labels, 4.0, weights=capacity / lengths)
    np.testing.assert_allclose(found.theta, expected, rtol=1e-6)
