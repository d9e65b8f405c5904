"""What one removal step of a filter may do."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robust_rlhf_jax.kernels import removal

remove = jax.jit(removal.remove_softly)
N = 10
some_scores = st.lists(st.floats(0, 100, width=32), min_size=N, max_size=N)
some_weights = st.lists(st.floats(0, 1, width=32), min_size=N, max_size=N)


@pytest.mark.slow
@given(some_scores, some_weights, st.floats(0, N), st.floats(0.0, 3.0), st.floats(0.0, 5.0))
def test_removal_never_adds_and_never_overspends(scores, weights, suspects, chop, budget):
    with jax.enable_x64(True):
        before = np.array(weights)
        after = np.asarray(remove(jnp.asarray(before), jnp.asarray(scores), suspects, chop, budget))
    assert (after <= before).all()
    assert (after >= 0).all()
    assert before.sum() - after.sum() <= budget + 1e-12


@pytest.mark.slow
@given(some_scores, some_weights, st.floats(0.125, 3.0), st.floats(0.01, 5.0))
def test_higher_scores_lose_a_larger_share(scores, weights, chop, budget):
    with jax.enable_x64(True):
        before = np.array(weights) + 0.01
        after = np.asarray(remove(jnp.asarray(before), jnp.asarray(scores), np.inf, chop, budget))
    kept = (after / before)[np.argsort(scores)]
    assert (np.diff(kept) <= 1e-12).all()


@pytest.mark.parametrize("chop", [0.0, 1e-6])
def test_without_chop_it_is_the_textbook_step(chop, x64):
    """w(1 − τ/τ_max): only the highest score loses everything."""
    rng = np.random.default_rng(0)
    weights, scores = rng.uniform(0.1, 1, 50), rng.exponential(size=50)
    found = remove(jnp.asarray(weights), jnp.asarray(scores), np.inf, chop, np.inf)
    np.testing.assert_allclose(found, weights * (1 - scores / scores.max()), rtol=1e-12, atol=1e-15)


def test_chop_removes_that_mass_whole(x64):
    """All rows above the chop's threshold go; those below lose τ/T."""
    scores = jnp.array([1.0, 8.0, 2.0, 100.0])
    found = remove(jnp.ones(4), scores, np.inf, 2.0, np.inf)
    np.testing.assert_allclose(found, [1 - 1 / 8, 0.0, 1 - 2 / 8, 0.0], rtol=1e-12)


def test_only_suspects_lose_weight(x64):
    scores = jnp.array([1.0, 8.0, 2.0, 100.0, 4.0])
    found = remove(jnp.ones(5), scores, 3.0, 2.0, np.inf)
    np.testing.assert_allclose(found, [1.0, 0.0, 1.0, 0.0, 0.5], rtol=1e-12)


def test_budget_scales_the_whole_step(x64):
    scores = jnp.array([0.0, 1.0, 2.0, 4.0])
    full = remove(jnp.ones(4), scores, np.inf, 1.0, np.inf)
    part = remove(jnp.ones(4), scores, np.inf, 1.0, 0.35)
    np.testing.assert_allclose(1 - part, (1 - full) * 0.35 / np.sum(1 - full), rtol=1e-12)
    np.testing.assert_array_equal(remove(jnp.ones(4), scores, np.inf, 1.0, 0.0), 1.0)


def test_zero_scores_remove_nothing():
    np.testing.assert_array_equal(remove(jnp.ones(4), jnp.zeros(4), np.inf, 1.0, 10.0), 1.0)


def test_a_removed_row_does_not_set_the_threshold(x64):
    """A row left with the weight `GONE` or less counts no more among the highest scores."""
    scores = jnp.array([1e9, 4.0, 2.0, 1.0])
    weights = jnp.array([removal.GONE, 1.0, 1.0, 1.0])
    found = remove(weights, scores, np.inf, 0.5, np.inf)
    np.testing.assert_allclose(found, [0.0, 0.0, 0.5, 0.75], atol=1e-12)


def test_rows_far_below_the_highest_score_lose_next_to_nothing(x64):
    scores = jnp.array([1e6, 8.0, 4.0, 1.0])
    found = remove(jnp.ones(4), scores, np.inf, 2.0, np.inf)
    np.testing.assert_allclose(found, 1 - np.minimum(scores / (1e6 / removal.TOP_RANGE), 1.0), rtol=1e-12)
    near = jnp.array([7.9 * removal.TOP_RANGE, 8.0, 4.0, 1.0])
    np.testing.assert_allclose(
        remove(jnp.ones(4), near, np.inf, 2.0, np.inf), [0.0, 0.0, 0.5, 0.875], rtol=1e-12
    )


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_the_unit_of_the_scores_does_not_matter(unit, x64):
    """Neither to what is removed nor to what a removed row counts among the highest."""
    scores, weights = jnp.array([1e4, 900.0, 8.0, 4.0, 1.0]), jnp.array([0.0, 1.0, 1.0, 1.0, 1.0])
    plain, other = (remove(weights, by * scores, 3.0, 2.0, 1.5) for by in (1.0, unit))
    assert plain[2] < 1
    np.testing.assert_allclose(other, plain, rtol=1e-12)


def test_weights_of_other_rows_are_refused():
    with pytest.raises(AssertionError):
        remove(jnp.ones(6), jnp.ones(1), 1.0, 1.0, 1.0)
    with pytest.raises(AssertionError):
        remove(jnp.ones((6, 1)), jnp.ones((6, 1)), 1.0, 1.0, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("wide", [False, True])
def test_what_rounding_leaves_of_a_removed_row_is_nothing(wide):
    """The budget is that of the rows that go, up to rounding: they go, and leave no sliver."""
    with jax.enable_x64(wide):
        scores = jnp.concatenate([jnp.ones(90), jnp.full(10, 50.0)])
        budget = 10.0 * (1.0 - 4 * jnp.finfo(scores.dtype).eps)
        weights = removal.remove_softly(jnp.ones(100), scores, jnp.asarray(10.0), jnp.asarray(10.0), budget)
        assert weights.dtype == scores.dtype
        np.testing.assert_array_equal(weights, scores < 2.0)
