"""`maximise_by_looks` against SciPy in float64 and against Newton; lanes; what it says when it could not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.special
from slow_parameters import slow

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.rewards import wide_fit

from .wide_worlds import N, unit_free_pairs

maximise = jax.jit(wide_fit.maximise_by_looks)
KINDS = [{}, {"heavy": True}, {"planted": N // 10}]


def problem(dtype=jnp.float32, strength=50.0, **given):
    """(rows, weights, start, precision): a tenth of the weights is 0."""
    pairs = unit_free_pairs(dtype, **given)
    rng = np.random.default_rng(3)
    weights = rng.uniform(size=N) * (rng.uniform(size=N) < 0.9)
    return (
        pairs.rows,
        jnp.asarray(weights, dtype),
        jnp.zeros_like(pairs.penalty),
        (strength * pairs.penalty).astype(dtype),
    )


def reference(rows, weights, _, precision):
    rows, weights, precision = (np.asarray(part, np.float64) for part in (rows, weights, precision))

    def loss(t):
        margins = rows @ t
        slope = precision * t - (weights * scipy.special.expit(-margins)) @ rows
        return 0.5 * precision @ t**2 - weights @ scipy.special.log_expit(margins), slope

    options = {"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 50}
    start = np.zeros(rows.shape[1])
    return scipy.optimize.minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x


@pytest.mark.parametrize("given", KINDS)
@pytest.mark.parametrize(("wide", "tolerance"), [slow(False, 2e-3), (True, 1e-6)])
def test_weighted_with_a_prior_equals_scipy(given, wide, tolerance):
    with jax.enable_x64(wide):
        stated = problem(jnp.float64 if wide else jnp.float32, **given)
        found, expected = maximise(*stated), reference(*stated)
        assert found.t.dtype == (jnp.float64 if wide else jnp.float32)
        assert np.linalg.norm(found.t - expected) < tolerance * np.linalg.norm(expected)
        np.testing.assert_allclose(found.margins, stated[0] @ found.t, rtol=1e-4, atol=1e-5)
        assert found.status == Status.CONVERGED


def test_few_looks_from_nothing_and_fewer_from_nearby():
    rows, weights, start, precision = problem()
    cold = maximise(rows, weights, start, precision)
    warm = maximise(rows, weights, cold.t, 1.1 * precision)
    assert cold.looks < 20
    assert warm.looks < cold.looks


def test_where_the_priors_curvature_says_so_no_further_look_is_taken():
    rows, weights, start, precision = problem()
    found = maximise(rows, weights, start, precision)
    again = maximise(rows, weights, found.t, precision)
    assert again.looks == 1
    np.testing.assert_array_equal(again.t, found.t)


def test_a_prior_too_weak_to_tell_is_no_reason_to_stop():
    """Ten looks and more after which the weak prior alone would let the fit be anywhere."""
    with jax.enable_x64(True):
        stated = problem(jnp.float64, strength=0.1)
        found, expected = maximise(*stated), reference(*stated)
        assert found.status == Status.CONVERGED
        assert np.linalg.norm(found.t - expected) < 1e-6 * np.linalg.norm(expected)


@pytest.mark.slow
def test_a_batch_is_a_loop_whatever_one_lane_has():
    """Fits that begin apart, so that some end sooner; the third has weights that are not finite."""
    rows, weights, start, precision = problem()
    starts = jnp.stack([start, start + 1.0, start, maximise(rows, weights, start, precision).t])
    shares = jnp.stack([weights, 1.0 - weights, weights.at[5].set(jnp.nan), weights])
    given = (rows, shares, starts, precision)
    together = jax.jit(jax.vmap(wide_fit.maximise_by_looks, (None, 0, 0, None)))(*given)
    assert list(np.asarray(together.status)) == [0, 0, Status.NONFINITE, 0]
    for i in (0, 1, 3):
        alone = maximise(rows, shares[i], starts[i], precision)
        assert np.linalg.norm(together.t[i] - alone.t) < 1e-3 * np.linalg.norm(alone.t)


def test_an_axis_that_no_row_shows_stays_at_its_prior():
    rows, weights, start, precision = problem()
    found = maximise(rows.at[:, 0].set(0.0), weights, start.at[0].set(3.0), precision)
    np.testing.assert_allclose(found.t[0], 0.0, atol=1e-3)
    assert found.status == Status.CONVERGED


def test_too_few_looks_are_said(monkeypatch):
    monkeypatch.setattr(wide_fit, "MAX_LOOKS", 2)
    assert jax.jit(lambda *given: wide_fit.maximise_by_looks(*given))(*problem()).status == Status.MAX_STEPS


@pytest.mark.slow
@pytest.mark.parametrize("longer", [1.003, 1.01, 1.05])
def test_from_near_its_end_a_fit_still_finds_it_along_a_flat_direction(longer):
    """A first step from nearby is as short as rounding where the curvature is far below that of the other axes."""
    n, flat = 40_000, 0.1
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(n, 150))
    rows[:, 0] *= flat
    truth = np.zeros(150)
    truth[0] = 1.5 / flat
    rows *= np.where(rng.random(n) < scipy.special.expit(rows @ truth), 1.0, -1.0)[:, None]
    weights, precision = np.ones(n), np.full(150, 0.01)
    best = reference(rows, weights, None, precision)
    given = (jnp.asarray(part, jnp.float32) for part in (rows, weights, longer * best, precision))
    found = maximise(*given)
    off, chance = np.asarray(found.t) - best, scipy.special.expit(rows @ best)
    nats = 0.5 * np.sum(chance * (1 - chance) * (rows @ off) ** 2)
    # Twice what the rounding of the value hides; one quiet step alone leaves .4.
    assert nats < 2 * 4 * np.finfo(np.float32).eps * 1.5 * n
