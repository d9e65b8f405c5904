"""Davidson's three outcomes: SciPy's optimum, the reduction to decided pairs, limits and batches."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize

from robust_rlhf_jax.likelihood import outcome_log_chances, tie_chances, tie_strength


def drawn(n=4_000, nu=0.8, k=3, seed=0):
    """(x, outcome 0 first, 1 tie, 2 second, θ)."""
    rng = np.random.default_rng(seed)
    x, theta = rng.normal(size=(n, k)), np.linspace(1.0, -1.0, k)
    margins = x @ theta
    weights = np.stack([np.exp(margins / 2), np.full(n, nu), np.exp(-margins / 2)], axis=1)
    chances = weights / weights.sum(axis=1, keepdims=True)
    return x, (rng.random((n, 1)) > np.cumsum(chances, axis=1)).sum(axis=1), theta


def test_chances_are_the_formula():
    margins = np.linspace(-3, 3, 7)
    found = np.exp(np.asarray(outcome_log_chances(jnp.asarray(margins), jnp.asarray(0.5))))
    weights = np.stack([np.exp(margins / 2), np.full(7, 0.5), np.exp(-margins / 2)], axis=1)
    np.testing.assert_allclose(found, weights / weights.sum(axis=1, keepdims=True), rtol=2e-6)


def test_decided_pairs_follow_bradley_and_terry():
    margins = jnp.linspace(-4.0, 4.0, 9)
    log_chances = outcome_log_chances(margins, jnp.asarray(2.0))
    of_decided = jax.nn.sigmoid(log_chances[:, 0] - log_chances[:, 2])
    np.testing.assert_allclose(of_decided, jax.nn.sigmoid(margins), rtol=1e-6)


def test_margins_without_ties_and_huge_margins_are_finite():
    chances = jnp.exp(outcome_log_chances(jnp.array([-1e4, 0.0, 1e4]), jnp.zeros(())))
    np.testing.assert_allclose(chances, [[0, 0, 1], [0.5, 0, 0.5], [1, 0, 0]], atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_strength_is_scipys_maximum_of_the_likelihood(weighted):
    x, outcome, theta = drawn()
    margins = x @ theta
    weights = np.random.default_rng(1).random(len(x)) if weighted else np.ones(len(x))

    def loss(log_nu):
        nu = np.exp(log_nu)
        total = np.log(np.exp(margins / 2) + np.exp(-margins / 2) + nu)
        utility = np.choose(outcome, [margins / 2, np.full(len(x), log_nu), -margins / 2])
        return -np.sum(weights * (utility - total))

    best = np.exp(
        scipy.optimize.minimize_scalar(loss, bounds=(-5, 5), method="bounded", options={"xatol": 1e-9}).x
    )
    found = tie_strength(jnp.asarray(margins)[None], jnp.asarray(outcome == 1), jnp.asarray(weights))
    assert float(found) == pytest.approx(best, rel=1e-4)


@pytest.mark.slow
def test_strength_is_found_within_five_standard_errors():
    x, outcome, theta = drawn(n=20_000)
    found = float(tie_strength(jnp.asarray(x @ theta)[None], jnp.asarray(outcome == 1), jnp.ones(len(x))))
    chance = np.asarray(tie_chances(jnp.asarray(x @ theta), jnp.asarray(0.8)))
    error = 1 / np.sqrt(np.sum(chance * (1 - chance)))  # of log ν
    assert abs(np.log(found / 0.8)) < 5 * error


def test_theta_of_all_outcomes_is_that_of_decided_pairs_within_what_ties_know():
    """Maximum likelihood over θ and ν together by SciPy, beside Bradley–Terry on decided pairs."""
    x, outcome, theta = drawn(n=20_000)

    def joint(parameters):
        margins, log_nu = x @ parameters[:3], parameters[3]
        total = np.logaddexp(np.logaddexp(margins / 2, -margins / 2), log_nu)
        return -np.mean(np.choose(outcome, [margins / 2, np.full(len(x), log_nu), -margins / 2]) - total)

    def decided(parameters):
        kept = outcome != 1
        signs = np.where(outcome[kept] == 0, 1.0, -1.0)
        return np.mean(np.logaddexp(0, -signs * (x[kept] @ parameters)))

    both = scipy.optimize.minimize(joint, np.zeros(4), method="BFGS").x
    alone = scipy.optimize.minimize(decided, np.zeros(3), method="BFGS").x
    np.testing.assert_allclose(both[:3], alone, atol=0.02)
    np.testing.assert_allclose(alone, theta, atol=0.1)


def test_the_information_that_ties_add_is_what_the_head_of_the_module_says():
    margin, nu = 1.3, 0.7
    p = np.exp(np.asarray(outcome_log_chances(jnp.asarray(margin), jnp.asarray(nu)), float))
    s, d = p[0] + p[2], p[0] - p[2]
    scores = np.array([0.5, 0.0, -0.5]) - 0.5 * d
    whole = np.sum(p * scores**2)
    conditional = p[0] * p[2] / s
    np.testing.assert_allclose(conditional, (s**2 - d**2) / (4 * s), rtol=1e-5)
    np.testing.assert_allclose(whole - conditional, 0.25 * d**2 * (1 - s) / s, rtol=1e-4)


@pytest.mark.slow
def test_no_ties_no_strength_and_a_batch_is_a_loop():
    rng = np.random.default_rng(0)
    margins = jnp.asarray(rng.normal(size=(3, 2, 50)))
    tied = jnp.asarray(rng.random((3, 50)) < jnp.array([[0.0], [0.3], [1.0]]))
    found = jax.vmap(lambda m, t: tie_strength(m, t, jnp.ones(50)))(margins, tied)
    alone = [float(tie_strength(m, t, jnp.ones(50))) for m, t in zip(margins, tied, strict=True)]
    np.testing.assert_allclose(found[:2], alone[:2], rtol=1e-5)
    assert found[0] == 0
    # Ties alone: the likelihood rises for ever, and the last digits of where its ascent ends are the platform's.
    np.testing.assert_allclose(np.log(found[2]), np.log(alone[2]), rtol=1e-2)
    assert found[2] > 1e6
