"""γ-stationarity against NumPy, finite differences and all directions of a ball; Lemma 3.1 itself."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special

from robust_rlhf_jax.likelihood import stationarity, stationarity_bound, trimmed_mle

from .trimmed_fits import sample


def trimmed_likelihood(theta, x, labels, kept):
    return np.sort(scipy.special.log_expit(labels * (x @ theta)))[-kept:].sum() / len(x)


@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_slope_of_the_trimmed_likelihood(seed, x64):
    """Away from ties the kept pairs stay, so that central differences towards θ★ are the slope."""
    x, labels, truth = sample(share=0.1, seed=seed)
    theta = np.random.default_rng(seed).normal(size=4)
    unit = (truth - theta) / np.linalg.norm(truth - theta)
    ends = [trimmed_likelihood(theta + s * 1e-6 * unit, x, labels, 180) for s in (1, -1)]
    found = stationarity(theta, x, labels, 0.1, target=truth)
    np.testing.assert_allclose(found, (ends[0] - ends[1]) / 2e-6, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("inside", [True, False])
def test_without_a_target_it_is_the_worst_of_the_ball(inside, x64):
    x, labels, _ = sample(k=2, share=0.1, seed=4)
    theta = np.array([0.6, -0.8]) * (0.7 if inside else 1.0)
    angles = np.linspace(0, 2 * np.pi, 20001)
    feasible = theta + 1e-4 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    # A step of 10⁻⁴ from the sphere leaves it by up to 5·10⁻⁹ where its direction is tangential.
    feasible = feasible[np.linalg.norm(feasible, axis=1) <= 1 + 1e-8]
    worst = max(float(stationarity(theta, x, labels, 0.1, target=t)) for t in feasible[::100])
    found = float(stationarity(theta, x, labels, 0.1, radius=1.0))
    assert worst <= found + 1e-9
    np.testing.assert_allclose(worst, found, rtol=2e-3)


@pytest.mark.slow
def test_a_converged_fit_is_stationary_in_its_ball(x64):
    x, labels, _ = sample(share=0.1, seed=5)
    for radius in (0.5, 10.0):
        found = trimmed_mle(jnp.asarray(x), jnp.asarray(labels), 0.1, radius=radius)
        assert stationarity(found.theta, x, labels, 0.1, radius=radius) < 1e-7
    assert stationarity(np.zeros(4), x, labels, 0.1) > 1e-2


@pytest.mark.slow
def test_lemma_3_1(x64):
    """γ ≤ max{2Lε, ε²/‖θ★ − θ̂‖} at the paper's η = ε² and its start."""
    for seed, epsilon in itertools.product(range(4), (0.02, 0.05, 0.1)):
        x, labels, truth = sample(share=epsilon, seed=seed)
        options = {"starts": jnp.zeros((2, 4)), "robust_start": False, "tolerance": epsilon**2}
        theta = trimmed_mle(jnp.asarray(x), jnp.asarray(labels), epsilon, radius=4.0, **options).theta
        level = stationarity_bound(
            epsilon,
            longest=np.linalg.norm(x, axis=1).max(),
            distance=np.linalg.norm(truth - np.asarray(theta)),
        )
        assert stationarity(theta, x, labels, epsilon, target=truth) <= level


def test_bound_by_hand():
    assert float(stationarity_bound(0.1, longest=3.0, distance=10.0)) == pytest.approx(0.6)
    assert float(stationarity_bound(0.1, longest=3.0, distance=3e-4)) == pytest.approx(100 / 3)


def test_bad_arguments_are_named():
    x, labels = np.ones((3, 2), np.float32), np.ones(3, np.float32)
    with pytest.raises(ValueError, match="got"):
        stationarity(np.zeros(3), x, labels, 0.1)
    with pytest.raises(ValueError, match="must be"):
        stationarity(np.zeros(2), x, 0 * labels, 0.1)


@pytest.mark.parametrize(
    ("theta", "x", "labels"),
    [
        ((3,), (3, 2), (3,)),
        ((1,), (3, 2), (3,)),
        ((2,), (3, 2), (4,)),
        ((2,), (3, 2), (2,)),
        ((), (3,), (3,)),
        ((2, 2), (3, 2, 2), (3,)),
    ],
)
def test_shapes_that_do_not_fit_are_refused(theta, x, labels):
    with pytest.raises(ValueError, match="stationarity takes"):
        stationarity(np.zeros(theta), np.ones(x, np.float32), np.ones(labels), 0.1)


def test_options_are_given_by_name():
    x, labels = np.ones((3, 2), np.float32), np.ones(3, np.float32)
    with pytest.raises(TypeError, match="positional"):
        stationarity(np.zeros(2), x, labels, 0.1, np.ones(2))
    with pytest.raises(TypeError, match="positional"):
        stationarity_bound(0.1, 2.0, 1.0)


def test_at_the_target_it_is_zero(x64):
    x, labels, truth = sample(share=0.1)
    assert stationarity(truth, x, labels, 0.1, target=truth) == 0
