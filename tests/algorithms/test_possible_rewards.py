"""The rewards that the data leave possible: as wide as noise makes them, or as lies may."""

from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from robust_rlhf_jax.algorithms import possible_rewards as module
from robust_rlhf_jax.algorithms.possible_rewards import (
    CONFIDENCE,
    LEAST_REACH,
    REACH,
    STANDARD_ERRORS,
    lies_may_hide,
    possible_rewards,
)
from robust_rlhf_jax.kernels.chi_square import chi_square_quantile
from robust_rlhf_jax.kernels.units import typical_entries
from robust_rlhf_jax.rewards import fit_data
from robust_rlhf_jax.rewards.scarcity import secured

from .robust_policy_worlds import PAIRS, fit_of, rewards_about, world


@pytest.mark.parametrize(
    ("found", "told", "hiding"),
    [
        (0.3, 0.2, True), (1 / 400, 0.2, True), (0.3, 0.104, True),
        # As many are disputed as may lie.
        (0.3, 0.1, False), (0.3, 0.05, False),
        # No pair is left out: ε is a ceiling, and honest data pay nothing for it.
        (0.0, 0.2, False),
    ],
)  # fmt: skip
def test_lies_may_hide_where_some_were_found_and_fewer_are_disputed_than_may_lie(found, told, hiding):
    """Of 400 pairs 100 are off the table; of the rest .1 are disputed."""
    undisputed = jnp.asarray(np.repeat([0.0, 1.0], [130, 270]))
    fit = fit_of(jnp.ones(400), epsilon=jnp.float32(found), undisputed=undisputed)
    assert lies_may_hide(fit, jnp.float32(told), jnp.float32(0.25)) == hiding


def test_one_direction_is_as_wide_by_either_rule():
    np.testing.assert_allclose(STANDARD_ERRORS, np.sqrt(scipy.stats.chi2.ppf(CONFIDENCE, 1)), atol=5e-4)


@pytest.mark.parametrize("radius", [50.0, 0.4])
def test_a_plan_is_guaranteed_what_it_promises_less_what_the_data_leave_open(radius, x64):
    """1.645 standard errors of φ, or the length of Θ's ball along it if that is less."""
    known, sizes = np.array([[4.0, 1.0], [1.0, 2.0]]), np.array([2.0, 0.5])
    centre, features = np.array([0.3, -0.2]), np.array([1.0, 3.0])
    possible = rewards_about(known, centre, sizes, radius)
    scaled = features / sizes
    by_data = STANDARD_ERRORS * np.sqrt(scaled @ np.linalg.solve(known, scaled))
    by_ball = 2 * radius * np.linalg.norm(scaled)
    assert (by_data < by_ball) == (radius == 50.0)
    promised = centre @ scaled
    np.testing.assert_allclose(possible.uncertainty(features), min(by_data, by_ball), rtol=1e-9)
    np.testing.assert_allclose(possible.promised(features), promised, rtol=1e-9)
    np.testing.assert_allclose(possible.guaranteed(features), promised - min(by_data, by_ball), rtol=1e-9)


def test_a_plan_is_guaranteed_no_more_than_any_believed_reward_pays(x64):
    """Of two explanations, one pays less for φ than all of the set."""
    possible = rewards_about(np.diag([1e4, 1e4]), np.array([1.0, 1.0]), np.array([2.0, 0.5]), 50.0)
    features = jnp.asarray([2.0, 0.5])
    alone = possible.guaranteed(features)
    np.testing.assert_allclose(alone, 2.0, atol=0.05)
    one = possible._replace(believed=jnp.asarray([[1.0, 1.0], [-1.0, 0.5]]))
    np.testing.assert_allclose(one.guaranteed(features), -0.5)
    np.testing.assert_allclose(one._replace(believed=jnp.ones((1, 2))).guaranteed(features), alone)


@pytest.mark.slow
@pytest.mark.parametrize("hiding", [False, True])
def test_what_is_possible_in_units_of_the_columns(hiding, monkeypatch, x64):
    """θ·s with F/(s_i s_j) about it, as far as REACH times its length and LEAST_REACH; no direction is unbounded."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 2)) * [3.0, 0.1]
    sure = SimpleNamespace(theta=jnp.asarray([0.2, -5.0]), information=jnp.asarray([[40.0, 1.0], [1.0, 0.5]]))
    monkeypatch.setattr(module, "secured", lambda x, found, epsilon, **_: sure)
    rank = 5
    # Approximate (test_confidence.py): what is asked for here is which quantile it is.
    width = float(jnp.sqrt(chi_square_quantile(CONFIDENCE, jnp.asarray(rank)))) if hiding else STANDARD_ERRORS
    both = SimpleNamespace(theta=jnp.asarray([[1.0, 2.0], [3.0, 4.0]]), probability=jnp.asarray([0.9, 0.01]))
    found = SimpleNamespace(rank=jnp.asarray(rank), theta=jnp.asarray([0.5, -1.0]), explanations=both)
    possible = possible_rewards(jnp.asarray(x), found, jnp.asarray(0.1), jnp.asarray(hiding))
    sizes = np.asarray(typical_entries(jnp.asarray(x)))
    np.testing.assert_allclose(possible.sizes, sizes)
    # The second is hardly believed: θ̂ stands in its place.
    np.testing.assert_allclose(possible.believed, np.array([[1.0, 2.0], [0.5, -1.0]]) * sizes)
    np.testing.assert_allclose(possible.set.centre, sure.theta * sizes, rtol=1e-12)
    radius = REACH * np.linalg.norm(sure.theta * sizes) + LEAST_REACH
    np.testing.assert_allclose(possible.set.radius, radius, rtol=1e-12)
    np.testing.assert_allclose(possible.set.size, width, rtol=1e-12)
    known = np.asarray(sure.information) / np.outer(sizes, sizes)
    vectors = np.asarray(possible.set.eigenvectors)
    shape = (vectors * np.asarray(possible.set.eigenvalues)) @ vectors.T
    np.testing.assert_allclose(shape, known, rtol=1e-9)
    floored = known + (width / radius) ** 2 * np.eye(2)
    np.testing.assert_allclose(possible.factor @ possible.factor.T, floored, rtol=1e-9)


@pytest.mark.slow
def test_the_set_of_rewards_holds_the_true_one_and_knows_nothing_of_unseen_directions():
    mdp, data = world("uniform")
    found = fit_data(data, jnp.float32(0.1))
    possible = possible_rewards(data.differences(), found, jnp.float32(0.1), jnp.asarray(False))
    # Up to the per-step shift that no comparison shows.
    x = data.differences()
    values, vectors = np.linalg.eigh(np.asarray(x.T @ x) / PAIRS)
    seen = vectors[:, values > 1e-4 * values[-1]]
    gap = seen @ (seen.T @ (np.asarray(mdp.theta).reshape(-1) - np.asarray(found.theta)))
    known = np.asarray(secured(x, found, jnp.float32(0.1)).information)
    assert gap @ known @ gap < scipy.stats.chi2.ppf(0.99, int(found.rank))
    # Along one direction: 1.645 standard errors, here seen directions at random.
    directions = np.random.default_rng(0).standard_normal((500, seen.shape[1])) @ seen.T
    missed = np.mean([abs(gap @ d) > float(possible.uncertainty(jnp.asarray(d))) for d in directions])
    assert 0.0 < missed < 0.3
    # Nothing is believed to be longer than three times the estimate and 1.
    length = np.linalg.norm(np.asarray(found.theta) * np.asarray(possible.sizes))
    np.testing.assert_allclose(possible.set.radius, 3.0 * length + 1.0, rtol=1e-3)
    unseen = jnp.asarray(vectors[:, values <= 1e-4 * values[-1]][:, 0])
    assert possible.uncertainty(unseen) > 5 * possible.uncertainty(jnp.asarray(vectors[:, -1]))
