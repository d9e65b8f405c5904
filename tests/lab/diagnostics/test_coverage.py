"""ξ, α, ν, κ against closed forms, invariances and brute force."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.lab.diagnostics import coverage
from robust_rlhf_jax.lab.diagnostics._coverage import largest_margin, link_steepness
from robust_rlhf_jax.lab.worlds import hard_instance
from robust_rlhf_jax.mdp import LinearMDP, optimal_policy, rollout, uniform_policy


def bandit(chances, values=(0.1, 0.2, 0.9)):
    """One state, one step, one-hot actions, drawn with these chances."""
    n = len(chances)
    mdp = LinearMDP(jnp.eye(n)[None], jnp.ones((1, n, 1)), jnp.asarray([values]), jnp.ones(1))
    return mdp, jnp.asarray(chances)[None, None]


@pytest.mark.slow
def test_one_hot_bandit_has_closed_forms(x64):
    p = np.array([0.5, 0.3, 0.2])
    mdp, policy = bandit(p)
    found = coverage(mdp, (policy, policy))
    difference = 2 * (np.diag(p) - np.outer(p, p))
    average = 2 * (np.diag(p) + np.outer(p, p))
    best = np.eye(3)[2]
    spectrum = np.linalg.eigvalsh(difference)
    np.testing.assert_allclose(found.xi, spectrum[1], rtol=1e-10)
    np.testing.assert_allclose(found.xi_average, np.linalg.eigvalsh(average)[0], rtol=1e-10)
    np.testing.assert_allclose(found.nu, np.sum(np.linalg.solve(average, best) ** 2), rtol=1e-10)
    np.testing.assert_allclose(found.nu_steps, 1 / p[2] ** 2, rtol=1e-10)
    np.testing.assert_allclose(found.alpha_average, np.linalg.solve(average, best)[2], rtol=1e-10)
    wanted = np.outer(best, best) + np.diag(p) - np.outer(p, best) - np.outer(best, p)
    ratio = np.linalg.eigvals(np.linalg.pinv(difference) @ wanted).real.max()
    np.testing.assert_allclose(found.alpha, ratio, rtol=1e-8)
    np.testing.assert_allclose(found.kappa, 2 + 2 * np.cosh(0.8), rtol=1e-10)
    assert (int(found.rank), int(found.rank_average)) == (2, 3)


@pytest.mark.slow
def test_behaviour_as_target_is_perfectly_conditioned(small_mdp64, random_policy):
    policies = random_policy(small_mdp64, 1), random_policy(small_mdp64, 2)
    found = coverage(small_mdp64, policies, policies[0])
    np.testing.assert_allclose(found.alpha, 1.0, rtol=1e-9)
    assert int(found.rank) == small_mdp64.horizon * (small_mdp64.dim - 1)


@pytest.mark.slow
def test_rotated_features_are_covered_alike(small_mdp64, random_policy, rotate_features):
    policies = random_policy(small_mdp64, 1), random_policy(small_mdp64, 2)
    target = optimal_policy(small_mdp64)[0]
    a = coverage(small_mdp64, policies, target)
    b = coverage(rotate_features(small_mdp64), policies, target)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-7)


def test_a_target_off_the_data_is_not_covered_at_all(x64):
    mdp, policy = bandit([0.6, 0.4, 0.0])
    found = coverage(mdp, (policy, policy))
    assert np.isinf([found.alpha, found.alpha_average, found.nu, found.nu_steps]).all()
    assert float(found.xi) > 0


@pytest.mark.slow
def test_rarer_means_worse():
    levels = [coverage(*hard_instance(jax.random.key(0), rare_probability=p)) for p in (0.2, 0.1, 0.01)]
    for name in ("alpha", "alpha_average", "nu", "nu_steps"):
        assert np.all(np.diff([float(getattr(c, name)) for c in levels]) > 0), name
    assert np.all(np.diff([float(c.xi) for c in levels]) < 0)


@pytest.mark.slow
def test_largest_margin_is_never_exceeded_and_nearly_reached(small_mdp):
    uniform = uniform_policy(small_mdp)
    states, actions = rollout(jax.random.key(0), small_mdp, uniform, 50_000)
    rewards = np.asarray(small_mdp.rewards())
    returns = sum(rewards[h, states[:, h], actions[:, h]] for h in range(small_mdp.horizon))
    spread = returns.max() - returns.min()
    largest = float(largest_margin(small_mdp, (uniform, uniform)))
    assert spread <= largest * (1 + 1e-5)
    assert spread >= 0.8 * largest


@pytest.mark.slow
def test_a_given_tolerance_names_the_null_directions(x64, make_mdp, random_policy):
    mdp = make_mdp()
    rounded = jax.tree.map(lambda leaf: leaf.astype(jnp.float32).astype(leaf.dtype), mdp)
    policy = random_policy(mdp)
    assert int(coverage(rounded, (policy, policy), tolerance=1e-5).rank) == mdp.horizon * (mdp.dim - 1)


@pytest.mark.slow
def test_kappa_of_the_ball_is_never_exceeded(make_mdp):
    """κ at any reward of the ball, the worst of 200 drawn and of the direction of the longest difference."""
    mdp = make_mdp(seed=3)
    uniform = uniform_policy(mdp)
    found = coverage(mdp, (uniform, uniform))
    rng = np.random.default_rng(0)
    table = np.asarray(mdp.features).reshape(-1, mdp.dim)
    apart = table[:, None] - table[None]
    longest = apart.reshape(-1, mdp.dim)[np.argmax(np.linalg.norm(apart, axis=-1))]
    thetas = rng.normal(size=(201, *mdp.theta.shape))
    thetas[0] = longest
    thetas *= np.sqrt(mdp.theta.size) / np.linalg.norm(thetas, axis=(1, 2), keepdims=True)

    @jax.jit
    def at(theta):
        world = LinearMDP(mdp.features, mdp.transition_measures, theta, mdp.initial_distribution)
        return link_steepness(largest_margin(world, (uniform, uniform)))

    kappas = np.array([at(jnp.asarray(theta, jnp.float32)) for theta in thetas])
    assert kappas.max() <= found.kappa_ball
    assert np.log(kappas.max()) >= 0.5 * np.log(found.kappa_ball)
    assert found.kappa <= found.kappa_ball
