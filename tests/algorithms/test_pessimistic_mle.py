"""The pessimistic baselines: where their sets end."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax import sample_preferences
from robust_rlhf_jax.algorithms import DescentConfig, PessimisticMLEConfig, pessimistic_mle
from robust_rlhf_jax.algorithms._pessimistic_mle import _linear_set
from robust_rlhf_jax.oracles import ExactOracle


@pytest.mark.slow
@pytest.mark.parametrize("penalty", ["likelihood", "linear"])
def test_a_baseline_stops_at_the_edge_of_its_own_set(penalty, small_mdp64):
    """One step far too long ends where ℓ has lost ζ, or where its quadratic model at the mean curvature has."""
    data = sample_preferences(jax.random.key(0), small_mdp64, 200)
    config = PessimisticMLEConfig(penalty, DescentConfig(gradient="autodiff", steps=1, step_size=1e3), 50.0)
    found = pessimistic_mle(jax.random.key(1), data, 0.0, oracle=ExactOracle(small_mdp64), config=config)
    x, labels = np.asarray(data.differences()), np.asarray(data.labels)
    theta, centre = (np.ravel(t) for t in (found.theta, found.diagnostics["theta_estimate"]))
    chance = 1 / (1 + np.exp(-x @ centre))
    lost = {
        "likelihood": np.mean(
            np.logaddexp(0, -labels * (x @ theta)) - np.logaddexp(0, -labels * (x @ centre))
        ),
        "linear": 0.5 * np.mean(chance * (1 - chance)) * np.mean((x @ (theta - centre)) ** 2),
    }
    assert np.linalg.norm(theta) < 49
    np.testing.assert_allclose(lost[penalty], found.diagnostics["zeta"], rtol=1e-3)
    assert abs(lost["likelihood"] - lost["linear"]) > 0.01 * lost[penalty]


def test_the_linear_set_has_the_mean_curvature_of_the_likelihood(x64):
    """½c̄(θ − θ̂)ᵀΣ(θ − θ̂) ≤ ζ, c̄ the mean of P(1 − P): in NumPy, just inside and just outside of the edge."""
    rng = np.random.default_rng(0)
    x, centre, zeta = rng.normal(size=(50, 3)), np.array([1.5, -1.0, 0.5]), 0.02
    allowed = _linear_set(jnp.asarray(x), jnp.asarray(centre), zeta, 100.0)
    chance = 1 / (1 + np.exp(-x @ centre))
    for way in rng.normal(size=(5, 3)):
        edge = np.sqrt(2 * zeta / (np.mean(chance * (1 - chance)) * np.mean((x @ way) ** 2)))
        assert allowed.contains(jnp.asarray(centre + (1 - 1e-6) * edge * way))
        assert not allowed.contains(jnp.asarray(centre + (1 + 1e-6) * edge * way))
