"""Hölder-DPO's loss against SciPy from many starts, its consistency, and its share of wrong labels."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from noisy_labels import RADIUS, lowest, sample

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.rewards.rivals.holder_dpo import OwnDensityPower, contamination, holder_dpo
from robust_rlhf_jax.rewards.rivals.redescending import redescending


@pytest.mark.slow
@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0, 4.0])
def test_reaches_the_best_of_many_starts(gamma, x64):
    """The authors' loss, as their code has it."""
    x, labels = sample()

    def value(theta):
        p = 1 / (1 + np.exp(-labels * (x @ theta)))
        return -(1 + gamma) * np.mean(p**gamma) + gamma * np.mean(p ** (gamma + 1))

    fit = holder_dpo(jnp.asarray(x), jnp.asarray(labels), 0.1, radius=RADIUS, gamma=gamma)
    assert fit.status == Status.CONVERGED
    assert value(np.asarray(fit.theta)) <= lowest(value).fun + 1e-7


@pytest.mark.slow
def test_slope_curvature_and_weight(x64):
    m = jnp.asarray([-40.0, -3.0, -0.3, 0.0, np.log(2.0), 2.0, 5.0])
    loss = OwnDensityPower(jnp.asarray(2.0))
    np.testing.assert_allclose(loss.slope(m), jax.vmap(jax.grad(loss.value))(m), rtol=1e-8, atol=1e-14)
    np.testing.assert_allclose(loss.curvature(m), np.abs(jax.vmap(jax.grad(loss.slope))(m)), rtol=1e-9)
    ratio = np.asarray(loss.slope(m)) / -np.asarray(jax.nn.sigmoid(-m))
    np.testing.assert_allclose(loss.weight(m), ratio / ratio.max(), rtol=1e-8)
    assert loss.weight(m)[4] == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("gamma", [0.5, 1.0, 1.5])
def test_its_margin_is_that_of_the_chances_over_two_minus_gamma(gamma, x64):
    """One difference, labelled in proportion to its chance."""
    labels = np.repeat([1.0, -1.0], [75, 25])
    fit = holder_dpo(jnp.ones((100, 1)), jnp.asarray(labels), 0.1, radius=20.0, gamma=gamma)
    np.testing.assert_allclose(fit.theta, np.log(3.0) / (2.0 - gamma), rtol=1e-5)


@pytest.mark.slow
def test_at_the_papers_gamma_only_the_ball_bounds_theta(x64):
    labels = np.repeat([1.0, -1.0], [75, 25])
    fit = holder_dpo(jnp.ones((100, 1)), jnp.asarray(labels), 0.1, radius=6.0)
    np.testing.assert_allclose(fit.theta, 6.0, rtol=1e-9)


@pytest.mark.slow
def test_at_gamma_one_it_is_the_density_power_divergence(x64):
    x, labels = map(jnp.asarray, sample())
    ours, theirs = (fit(x, labels, 0.1, radius=RADIUS, gamma=1.0) for fit in (redescending, holder_dpo))
    np.testing.assert_allclose(theirs.theta, ours.theta, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [0.0, 0.1, 0.3])
def test_the_share_of_wrong_labels_where_the_others_are_certain(wrong, x64):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2))
    labels = np.sign(x @ [2.0, -1.0]) * np.where(np.arange(400) < 400 * wrong, -1.0, 1.0)
    fit = holder_dpo(jnp.asarray(x), jnp.asarray(labels), 0.1, radius=100.0)
    share = contamination(jnp.asarray(labels * (x @ np.asarray(fit.theta))))
    np.testing.assert_allclose(share, wrong, atol=0.01)


@pytest.mark.slow
def test_honest_disagreement_counts_as_wrong(x64):
    """No label is flipped: the share is that of the labels which θ has wrong."""
    x, labels = sample(flipped=0.0)
    fit = holder_dpo(jnp.asarray(x), jnp.asarray(labels), 0.1, radius=100.0)
    margins = labels * (x @ np.asarray(fit.theta))
    assert np.mean(margins < 0) > 0.1
    np.testing.assert_allclose(contamination(jnp.asarray(margins)), np.mean(margins < 0), atol=0.01)


@pytest.mark.parametrize("gamma", [0.5, 2.0])
def test_the_share_is_that_of_normalised_chances(gamma, x64):
    """The paper's form: mean p̃^γ / Σ p̃^{1+γ} with p̃ = p/Σp, by Chebyshev's inequality at most 1."""
    margins = np.random.default_rng(1).normal(size=50)
    p = 1 / (1 + np.exp(-margins))
    normalised = p / p.sum()
    expected = 1 - np.mean(normalised**gamma) / np.sum(normalised ** (1 + gamma))
    assert expected > 0
    np.testing.assert_allclose(contamination(jnp.asarray(margins), gamma), expected, rtol=1e-9)


def test_bad_hyperparameters():
    x, labels = map(jnp.asarray, sample())
    for call in (
        lambda: holder_dpo(x, labels, 0.1, radius=1.0, gamma=0.0),
        lambda: contamination(labels, -1),
    ):
        with pytest.raises(ValueError, match=r"gamma=.* must be positive and finite\."):
            call()
