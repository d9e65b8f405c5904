"""κ over sets of rewards against SciPy and closed forms."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.special

from robust_rlhf_jax import Status
from robust_rlhf_jax.lab.diagnostics import kappa_over
from robust_rlhf_jax.likelihood import confidence_set, ellipsoid, trimmed_mle


def steepness(margin):
    return 1 / (scipy.special.expit(margin) * scipy.special.expit(-margin))


def maximum(x, constraints, start):
    """max θᵀx under g(θ) ≥ 0 by sequential quadratic programming."""
    constraints = [{"type": "ineq", "fun": g} for g in constraints]
    options = {"ftol": 1e-12, "maxiter": 500}
    found = scipy.optimize.minimize(
        lambda t: -t @ x, start, method="SLSQP", constraints=constraints, options=options
    )
    return -found.fun


@pytest.mark.slow
def test_a_ball_has_a_closed_form(x64):
    x = np.random.default_rng(0).normal(size=(5, 3))
    nothing_known = ellipsoid(jnp.zeros((3, 3)), jnp.zeros(3), jnp.asarray(1.0), jnp.asarray(0.7))
    found = kappa_over(nothing_known, jnp.asarray(x))
    margin = 0.7 * np.linalg.norm(x, axis=1).max()
    np.testing.assert_allclose([found.margin, found.margin_bound], margin, rtol=1e-6)
    np.testing.assert_allclose([found.lower, found.upper], steepness(margin), rtol=1e-5)
    assert found.status == Status.CONVERGED


@pytest.mark.parametrize("seed", range(3))
def test_an_ellipsoid_cut_by_a_ball(seed, x64):
    rng = np.random.default_rng(seed)
    x, root, centre = rng.normal(size=(4, 3)), rng.normal(size=(3, 3)), 0.2 * rng.normal(size=3)
    sigma = root @ root.T
    found = kappa_over(
        ellipsoid(jnp.asarray(sigma), jnp.asarray(centre), jnp.asarray(0.6), jnp.asarray(1.0)), jnp.asarray(x)
    )
    inside = [lambda t: 0.36 - (t - centre) @ sigma @ (t - centre), lambda t: 1 - t @ t]
    margin = max(maximum(s * row, inside, centre) for row in x for s in (1, -1))
    assert found.margin <= margin * (1 + 1e-6)
    assert margin <= found.margin_bound * (1 + 1e-9)
    np.testing.assert_allclose(found.margin_bound, found.margin, rtol=0.02)


@pytest.mark.slow
def test_a_likelihood_ratio_set(x64):
    """At θ̂ alone κ is several times smaller than over the set."""
    rng = np.random.default_rng(5)
    x, truth = rng.uniform(-1, 1, size=(120, 3)), np.array([1.5, -1.0, 0.5])
    labels = np.where(rng.uniform(size=120) < scipy.special.expit(x @ truth), 1.0, -1.0)
    fit = trimmed_mle(jnp.asarray(x), jnp.asarray(labels), 0.0, radius=6.0)
    centre, zeta = np.asarray(fit.theta), 0.03
    allowed = confidence_set(jnp.asarray(x), jnp.asarray(labels), fit.theta, zeta, radius=6.0)
    rows = x[np.argsort(-np.abs(x @ centre))[:3]]
    found = kappa_over(allowed, jnp.asarray(rows))

    def likelihood(theta):
        return scipy.special.log_expit(labels * (x @ theta)).mean()

    inside = [lambda t: likelihood(t) - likelihood(centre) + zeta, lambda t: 36 - t @ t]
    margin = max(maximum(s * row, inside, centre) for row in rows for s in (1, -1))
    assert found.margin <= margin * (1 + 1e-5)
    assert margin <= found.margin_bound * (1 + 1e-9)
    np.testing.assert_allclose(found.margin_bound, found.margin, rtol=0.05)
    assert found.lower > 1.5 * steepness(np.abs(rows @ centre).max())
