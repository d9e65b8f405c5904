"""The median of the raters' fits, each by SciPy on the ball."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
from rated_labels import RADIUS, sample

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.raters.rivals.median_of_raters import fits_of_raters, median_of_raters


def by_scipy(x, labels, bound):
    ball = {"type": "ineq", "fun": lambda t: bound**2 - t @ t}
    value = lambda t: np.mean(np.logaddexp(0, -labels * (x @ t)))  # noqa: E731
    options = {"ftol": 1e-15, "maxiter": 500}
    return scipy.optimize.minimize(
        value, np.zeros(x.shape[1]), method="SLSQP", constraints=ball, options=options
    )


@pytest.mark.slow
@pytest.mark.parametrize("bound", [1.0, 4.0])
def test_each_fit_is_scipys_on_the_ball(bound, x64):
    x, labels, who = sample()
    fits, status = fits_of_raters(jnp.asarray(labels[:, None] * x), jnp.asarray(who), 6, jnp.asarray(bound))
    assert status == Status.CONVERGED
    for k in range(6):
        mine = who == k
        np.testing.assert_allclose(fits[k], by_scipy(x[mine], labels[mine], bound).x, atol=1e-4)
    found = median_of_raters(
        jnp.asarray(x), jnp.asarray(labels), 0.1, jnp.asarray(who), 6, radius=RADIUS, bound=bound
    )
    np.testing.assert_allclose(found.theta, np.median(fits, axis=0))


@pytest.mark.slow
def test_separable_labels_go_to_the_bound_and_unseen_directions_stay_at_0(x64):
    x, who = np.array([[1.0, 0.0], [2.0, 0.0], [0.5, 0.5]]), np.array([0, 0, 1], np.int32)
    fits, status = fits_of_raters(jnp.asarray(x), jnp.asarray(who), 2, jnp.asarray(4.0))
    assert status == Status.CONVERGED
    np.testing.assert_allclose(fits, [[4.0, 0.0], [8**0.5, 8**0.5]], atol=1e-6)


@pytest.mark.slow
def test_the_smaller_of_bound_and_radius_holds(x64):
    x, labels, who = (jnp.asarray(part) for part in sample(1))
    small = median_of_raters(x, labels, 0.1, who, 6, radius=0.5)
    same = median_of_raters(x, labels, 0.1, who, 6, radius=RADIUS, bound=0.5)
    np.testing.assert_allclose(small.theta, same.theta, atol=1e-12)
    assert small.reliability is None


@pytest.mark.slow
def test_one_rater_of_many_moves_it_no_further_than_to_a_neighbour(x64):
    """Whatever the labels of one rater, each coordinate stays between order statistics of the others."""
    x, labels, who = sample(3, n_raters=7)
    fits = np.asarray(
        fits_of_raters(jnp.asarray(labels[:, None] * x), jnp.asarray(who), 7, jnp.asarray(4.0))[0]
    )
    others = np.sort(np.delete(fits, 0, axis=0), axis=0)
    for sign in (1.0, -1.0):
        lies = np.where(who == 0, sign * np.sign(x[:, 0]), labels)
        found = median_of_raters(
            jnp.asarray(x), jnp.asarray(lies), 0.1, jnp.asarray(who), 7, radius=RADIUS
        ).theta
        assert (found >= others[2] - 1e-6).all()
        assert (found <= others[3] + 1e-6).all()


def test_a_bound_that_is_not_positive():
    x, labels, who = (jnp.asarray(part) for part in sample())
    with pytest.raises(ValueError, match=r"bound=-1\.0 must be positive and finite\."):
        median_of_raters(x, labels, 0.1, who, 6, radius=RADIUS, bound=-1.0)
