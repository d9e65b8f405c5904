"""Lepski's rule: what it picks, what it promises, what it refuses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax import attacks, choose_epsilon, random_linear_mdp, sample_preferences

GRID = (0.0, 0.1, 0.2)
RADIUS = 12**0.5


@pytest.fixture(scope="module")
def world():
    mdp = random_linear_mdp(jax.random.key(0), n_states=12, n_actions=3, dim=4, horizon=3)
    return mdp, sample_preferences(jax.random.key(1), mdp, 3000)


def choose(data):
    return choose_epsilon(data.differences(), data.labels, GRID, radius=RADIUS)


def test_clean_data_need_no_trimming(world):
    _, data = world
    found = choose(data)
    assert float(found.epsilon) == 0.0
    np.testing.assert_array_equal(found.theta, found.fits.thetas[0])


def test_choice_under_attack_is_confirmed_and_near_the_truth(world):
    """Not larger than the true ε, and as good as it."""
    mdp, clean = world
    data = attacks.push_features(jax.random.key(2), clean, 0.1, mdp)
    found = choose(data)
    assert float(found.epsilon) == pytest.approx(0.1)
    x = np.asarray(clean.differences())
    error = np.sqrt(np.mean((x @ (np.asarray(found.theta) - np.asarray(mdp.theta).ravel())) ** 2))
    assert error <= 3 * float(found.radii[1])
    assert error < np.sqrt(np.mean((x @ (np.asarray(found.fits.thetas[0] - mdp.theta.ravel()))) ** 2)) / 3


def test_distances_are_root_mean_squares_of_margins_and_the_rule_is_the_loops(world):
    mdp, clean = world
    data = attacks.flip_confident(jax.random.key(2), clean, 0.1, mdp)
    found = choose(data)
    x, thetas = np.asarray(data.differences()), np.asarray(found.fits.thetas)
    want = [[np.sqrt(np.mean((x @ (a - b)) ** 2)) for a in thetas] for b in thetas]
    np.testing.assert_allclose(found.distances, want, rtol=0.2, atol=1e-3)  # Σ̂ is a filtered moment
    radii, near = np.asarray(found.radii), np.asarray(found.distances)
    good = [all(near[i, j] <= radii[i] + radii[j] for j in range(i + 1, 3)) for i in range(3)]
    assert int(found.index) == good.index(True)


@pytest.mark.parametrize(
    ("grid", "message"),
    [((0.1, 0.05), "must rise"), ((0.0, 0.5), "outside"), (0.1, "give a list"), ((), "give a")],
)
def test_wrong_grids(grid, message):
    with pytest.raises(ValueError, match=message):
        choose_epsilon(jnp.ones((4, 2)), jnp.ones(4), grid, radius=1.0)
