"""One step of both lengths against derivatives by automatic differentiation, and where there is nothing to change."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.kernels.expected_logistic import expected_logistic
from robust_rlhf_jax.raters._by_rater import RowsByRater
from robust_rlhf_jax.raters._lengths import LEAST, MOST, lengths
from robust_rlhf_jax.raters.taste import Crowd, tastes

K, EACH, R = 40, 12, 3
NO_PRIOR = (jnp.float32(0.0), jnp.float32(0.0))


def of_a_crowd(spread, assumed, seed=0):
    """(pairs, centre, tastes found under an `assumed` crowd) where the tastes of raters have this spread."""
    rng = np.random.default_rng(seed)
    who, mean = np.repeat(np.arange(K), EACH), np.array([1.5, -1.0, 0.5])
    t = mean + np.sqrt(spread) * rng.normal(size=(K, R))
    x = rng.normal(size=(len(who), R))
    labels = np.where(rng.logistic(size=len(who)) < np.sum(x * t[who], axis=1), 1, -1)
    pairs = RowsByRater.of(jnp.float32(x * labels[:, None]), jnp.asarray(who), K)
    centre = jnp.float32(mean)
    start = jnp.broadcast_to(centre, (K, R)), jnp.zeros(len(who))
    found = tastes(pairs, Crowd(centre, assumed * jnp.eye(R)), *start)
    return pairs, centre, found


def of_one_kind(pairs, centre, found, prior=NO_PRIOR):
    whole = jax.tree.map(lambda part: part[None], found)
    return lengths(pairs, centre[None], whole, jnp.ones((1, K)), prior)


@pytest.mark.slow
def test_the_step_is_along_the_derivatives():
    pairs, centre, found = of_a_crowd(1.0, 0.1)

    def gain(lengths):
        base = pairs.margins(jnp.broadcast_to(centre, (K, R)))
        margins = lengths[0] * base + lengths[1] * (pairs.margins(found.t) - base)
        return jnp.sum(expected_logistic(margins, lengths[1] ** 2 * found.variance).log_likelihood)

    at = jnp.ones(2)
    step = of_one_kind(pairs, centre, found) - 1.0
    assert float(jax.grad(gain)(at) @ step) > 0
    assert float(gain(at + step)) > float(gain(at))
    # The curvature leaves out how far E σ(M)σ(−M) changes: the step is Newton's to a third.
    newton = -jnp.linalg.solve(jax.hessian(gain)(at), jax.grad(gain)(at))
    np.testing.assert_allclose(step, newton, rtol=1 / 3, atol=0.02)


@pytest.mark.slow
def test_a_spread_that_was_thought_too_small_grows_and_one_too_large_shrinks():
    assert float(of_one_kind(*of_a_crowd(2.0, 0.3))[1]) > 1.02
    assert float(of_one_kind(*of_a_crowd(0.0, 1.0))[1]) < 0.98


@pytest.mark.slow
def test_raters_of_no_chance_and_a_firm_prior_change_nothing():
    pairs, centre, found = of_a_crowd(2.0, 0.3)
    nobody = lengths(
        pairs, centre[None], jax.tree.map(lambda part: part[None], found), jnp.zeros((1, K)), NO_PRIOR
    )
    np.testing.assert_array_equal(nobody, 1.0)
    firm = of_one_kind(pairs, centre, found, (jnp.float32(0.0), jnp.float32(1e9)))
    np.testing.assert_allclose(firm[1], 1.0, atol=1e-6)


@pytest.mark.slow
def test_steps_have_a_limit():
    pairs, centre, found = of_a_crowd(0.0, 1.0)
    far = of_one_kind(pairs, centre, found, (jnp.float32(1e9), jnp.float32(1.0)))
    assert float(far[1]) == MOST
    near = of_one_kind(pairs, centre, found, (jnp.float32(-1e9), jnp.float32(1.0)))
    assert float(near[1]) == LEAST
