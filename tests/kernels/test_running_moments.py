"""Moments that follow falling weights: NumPy in double precision, whatever was cancelled on the way."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.kernels import running_moments
from robust_rlhf_jax.kernels.linalg import DENSE_EIGH_UP_TO
from robust_rlhf_jax.kernels.running_moments import FEW, HELD, MANY, WIDE, WORTH_IT, updates_pay

moments_of = jax.jit(running_moments.moments_of)
follow = jax.jit(running_moments.follow)


def numpy_moments(x, weights, whitener=None):
    """(mean of the rows as they are, covariance of the whitened ones)."""
    mean = np.average(x, axis=0, weights=weights)
    y = (x - mean) @ (np.eye(x.shape[1]) if whitener is None else whitener)
    return mean, (y * weights[:, None]).T @ y / weights.sum()


def check(found, x, weights, whitener=None, rtol=1e-9):
    mean, covariance = numpy_moments(np.asarray(x, float), np.asarray(weights, float), whitener)
    scale = np.trace(covariance)
    np.testing.assert_allclose(found.covariance, covariance, atol=rtol * scale)
    root = np.eye(len(mean)) if whitener is None else whitener
    shift = (mean - np.asarray(found.centre, float)) @ root
    np.testing.assert_allclose(found.shift, shift, atol=rtol * np.sqrt(scale))
    np.testing.assert_allclose(found.total, weights.sum(), rtol=1e-5)


def drawn(n, d=7, seed=0):
    """(rows far from the origin, weights in (0, 1], a symmetric whitener)."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(d, d))
    return rng.normal(size=(n, d)) + 20.0, rng.uniform(0.1, 1.0, n), root + root.T


@pytest.mark.parametrize("n", [1, 3, MANY - 1, MANY, MANY + 1, 2 * MANY + 5])
@pytest.mark.parametrize("whitened", [False, True])
def test_all_rows(n, whitened, x64):
    x, weights, root = drawn(n)
    whitener = root if whitened else None
    check(moments_of(x, weights, whitener), x, weights, whitener)


@pytest.mark.parametrize("changed", [0, 1, FEW - 1, FEW, FEW + 1, 3000])
@pytest.mark.parametrize("whitened", [False, True])
def test_fallen_weights(changed, whitened, x64):
    x, weights, root = drawn(3000)
    whitener = root if whitened else None
    new = weights.copy()
    rows = np.random.default_rng(1).choice(3000, changed, replace=False)
    new[rows] *= np.random.default_rng(2).uniform(0, 0.9, changed)
    check(follow(moments_of(x, weights, whitener), x, weights, new, whitener), x, new, whitener)


@pytest.mark.parametrize("distance", [10.0, 1e3, 1e5])
def test_what_is_left_of_far_rows_is_not_rounding(distance):
    """A tenth of the rows as far out as `distance` go, in single precision: 1e-5 of what remains is right."""
    x, weights, _ = drawn(5000)
    x[:500] += distance
    x, new = x.astype(np.float32), np.where(np.arange(5000) < 500, 0.0, weights).astype(np.float32)
    found = follow(moments_of(x, weights.astype(np.float32)), x, weights.astype(np.float32), new)
    check(found, x, new, rtol=1e-5)


def test_many_small_steps_do_not_drift():
    """Thirty steps of one in a hundred, in single precision."""
    x, weights, _ = drawn(4000)
    x, weights = x.astype(np.float32), weights.astype(np.float32)
    moments, rng = moments_of(x, weights), np.random.default_rng(3)
    for _ in range(30):
        new = weights.copy()
        new[rng.choice(4000, 40)] *= np.float32(0.3)
        moments, weights = follow(moments, x, weights, new), new
    check(moments, x, weights, rtol=3e-6)


def test_rows_out_of_play_may_be_anything_but_nan(x64):
    """A last row of no weight that lies far out leaves no trace, though blocks are filled up with it."""
    x, weights, _ = drawn(600)
    x[-1], weights[-1] = 1e150, 0.0
    new = weights.copy()
    new[:10] = 0.0
    check(follow(moments_of(x, weights), x, weights, new), x, new)


@pytest.mark.slow
def test_a_batch_is_the_loop(x64):
    """vmap runs both branches of the choice between updating and summing anew."""
    x, weights, _ = drawn(700)
    many = np.stack([x, x])
    many[1, :70] += 1e6
    old, new = jnp.asarray(weights), jnp.where(jnp.arange(700) < 70, 0.0, weights)

    def step(rows):
        return running_moments.follow(running_moments.moments_of(rows, old), rows, old, new)

    batch = jax.jit(jax.vmap(step))(many)
    for i, rows in enumerate(many):
        for ours, alone in zip(jax.tree.leaves(batch), jax.tree.leaves(jax.jit(step)(rows)), strict=True):
            np.testing.assert_allclose(ours[i], alone, rtol=1e-10, atol=1e-8)


def test_nan_stays_nan(x64):
    x, weights, _ = drawn(300)
    x[5] = np.nan
    assert np.isnan(moments_of(x, jnp.ones(300)).covariance).all()
    assert np.isnan(follow(moments_of(x, jnp.ones(300)), x, np.ones(300), weights).covariance).all()


def test_where_updates_pay():
    """Tall and wide rows on a processor; narrow, few or very wide ones are summed whole."""
    on_cpu = jax.default_backend() == "cpu"
    assert updates_pay((40_000, 100)) == on_cpu
    assert not any(map(updates_pay, [(40_000, 6), (1000, 100), (40_000, 2000)]))


def test_a_full_sum_is_about_its_own_mean(x64):
    x, weights, root = drawn(50)
    found = moments_of(x, weights, root)
    mean, covariance = numpy_moments(x, weights, root)
    np.testing.assert_allclose(found.centre, mean, rtol=1e-12)
    np.testing.assert_allclose(found.first, 0.0, atol=1e-9)
    np.testing.assert_allclose(found.second, covariance * weights.sum(), rtol=1e-9)
    np.testing.assert_allclose(found.reach, np.trace(covariance) * weights.sum(), rtol=1e-12)


@pytest.mark.parametrize(("left", "summed_anew"), [(HELD + 0.05, False), (HELD - 0.05, True)])
def test_all_rows_are_summed_anew_once_too_little_is_left(left, summed_anew, x64):
    """The share of the trace that is left decides: rows of equal length, a share of them kept."""
    x = np.random.default_rng(7).normal(size=(400, 7))
    x = np.concatenate([x, -x]) / np.linalg.norm(np.concatenate([x, x]), axis=1)[:, None]
    old, new = np.ones(800), (np.arange(800) % 400 < 400 * left) * 1.0
    before = moments_of(x, old)
    after = follow(before, x, old, new)
    check(after, x, new)
    np.testing.assert_allclose(after.reach, new.sum() if summed_anew else old.sum(), rtol=1e-12)


def test_the_mean_taken_out_counts_as_lost(x64):
    """What is left lies far from the centre and close together: its second moment about the centre is large."""
    x = (
        np.random.default_rng(8).normal(size=(100, 7))
        + 10.0 * np.where(np.arange(100) < 50, 1.0, -1.0)[:, None]
    )
    new = np.where(np.arange(100) < 50, 1.0, 0.0)
    after = follow(moments_of(x, np.ones(100)), x, np.ones(100), new)
    np.testing.assert_allclose(after.centre, x[:50].mean(axis=0), rtol=1e-9)
    check(after, x, new)


def test_after_no_moments_all_rows_are_summed(x64):
    x, weights, root = drawn(50)
    nothing = running_moments.no_moments(jnp.asarray(x))
    assert nothing.total == 0
    for found, expected in zip(
        follow(nothing, x, jnp.zeros(50), weights, root), moments_of(x, weights, root), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="an accelerator sums all rows")
@pytest.mark.parametrize("d", [WIDE, 2 * WIDE, DENSE_EIGH_UP_TO])
def test_updates_pay_from_so_many_multiplications_on(d):
    least = -(-WORTH_IT // d**2)
    assert updates_pay((least, d))
    assert not updates_pay((least - 1, d))


@pytest.mark.parametrize("d", [WIDE - 1, DENSE_EIGH_UP_TO + 1])
def test_updates_do_not_pay_for_narrow_or_very_wide_rows(d):
    assert not updates_pay((WORTH_IT, d))


def test_weights_may_rise_again(x64):
    x, weights, root = drawn(60)
    new = weights.copy()
    new[3], new[7] = 0.0, 2.0 * weights[7]
    check(follow(moments_of(x, weights, root), x, weights, new, root), x, new, root)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["gpu", "tpu", "METAL"])
def test_an_accelerator_sums_all_rows(backend, monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    assert not updates_pay((40_000, 100))
