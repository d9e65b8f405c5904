"""The corrupt fraction: interval and guess where they can be checked, pieces against references."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax import attacks, estimate_epsilon, random_linear_mdp, sample_preferences
from robust_rlhf_jax.estimators.epsilon import (
    DEPTHS,
    CalibrationTests,
    bernstein_margin,
    contradictions,
    sign_functions,
)

GRID = (0.0, 0.1, 0.25)


@pytest.fixture(scope="module")
def world():
    mdp = random_linear_mdp(jax.random.key(0), n_states=12, n_actions=3, dim=4, horizon=3)
    return mdp, sample_preferences(jax.random.key(1), mdp, 3000)


def spoil(world, attack, epsilon):
    mdp, data = world
    if attack != "flip_random":
        return attacks.ATTACKS[attack](jax.random.key(2), data, epsilon, mdp)
    flipped = jax.random.uniform(jax.random.key(2), (data.n_pairs,)) < epsilon
    return eqx.tree_at(lambda d: d.labels, data, jnp.where(flipped, -data.labels, data.labels))


@pytest.mark.parametrize(
    ("attack", "epsilon"),
    [
        ("push_features", 0.0),
        ("push_features", 0.1),
        ("push_features", 0.2),
        ("flip_confident", 0.1),
        ("flip_random", 0.2),
    ],
)
def test_interval_holds_epsilon_and_the_guess_sees_what_shows(world, attack, epsilon):
    found = estimate_epsilon(spoil(world, attack, epsilon), grid=GRID, key=jax.random.key(3))
    assert 0 <= found.lower <= min(epsilon, float(found.estimate)) + 1e-6
    assert max(epsilon, float(found.estimate)) <= found.upper <= 0.5
    if attack == "flip_random":  # a higher temperature would look the same: too low, by design
        assert float(found.estimate) < epsilon
    else:
        assert float(found.estimate) == pytest.approx(epsilon, abs=0.04)


def test_contradictions_are_the_supremum_over_thresholds(x64):
    rng = np.random.default_rng(0)
    x, theta = rng.normal(size=(200, 2)), np.array([1.0, -2.0])
    labels = rng.choice([-1.0, 1.0], 200)
    margins = x @ theta
    shares = [
        np.mean((labels * margins <= -t) - (np.abs(margins) >= t) / (1 + np.exp(np.abs(margins))))
        for t in np.abs(margins)
    ]
    found = contradictions(*map(jnp.asarray, (x, labels, theta)))
    assert float(found) == pytest.approx(max(shares))


def test_margins_hold_for_the_true_reward_as_often_as_promised(x64):
    """Clean labels, δ = .1, 300 repeats: the largest excess at θ★ is positive in a tenth of them at most."""
    rng = np.random.default_rng(0)
    x, theta = rng.normal(size=(400, 2)), np.array([1.0, 1.0])
    signs = sign_functions(jnp.asarray(x), jnp.asarray([[1.0, 0.5], [0.0, 1.0]]))
    chance = 1 / (1 + np.exp(-x @ theta))
    wins = jnp.asarray(rng.uniform(size=(300, 400)) < chance, float)
    worst = jax.vmap(lambda w: jnp.max(CalibrationTests(jnp.asarray(x), w, signs).excess(theta, 0.1)))(wins)
    assert np.mean(np.asarray(worst) > 0) <= 0.1
    assert np.asarray(worst).max() > -0.1  # and they are not vacuous


def test_sign_functions_keep_the_surest_share(x64):
    x = jnp.linspace(-1.0, 1.0, 200)[:, None]
    signs = sign_functions(x, jnp.array([[2.0]]))
    np.testing.assert_allclose(jnp.mean(jnp.abs(signs), axis=0), DEPTHS, atol=0.01)
    assert np.all(np.asarray(signs * x) >= 0)


def test_bernstein_margin_by_hand():
    want = np.sqrt(2 * 0.25 * np.log(20) / 100) + np.log(20) / 300
    assert float(bernstein_margin(jnp.array(0.25), 100, 0.05)) == pytest.approx(want, rel=1e-5)


def test_wrong_arguments(world):
    _, data = world
    with pytest.raises(ValueError, match="confidence=1"):
        estimate_epsilon(data, confidence=1.0, key=jax.random.key(0))
    with pytest.raises(ValueError, match="too few"):
        estimate_epsilon(data.take(jnp.arange(3)), key=jax.random.key(0))
    with pytest.raises(ValueError, match="outside"):
        estimate_epsilon(data, grid=(0.0, 0.7), key=jax.random.key(0))
