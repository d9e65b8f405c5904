"""A function of explanations that is computed once for those that are alike."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.rewards.once_each import ALIKE, alike, once_each

E, N = 6, 40


def _explanations(seed=0):
    """Rows 0, 2 and 5 are alike, and 1 and 4."""
    rng = np.random.default_rng(seed)
    weights, margins = rng.random((E, N)), 5 * rng.normal(size=(E, N))
    for one, other in ((2, 0), (5, 0), (4, 1)):
        weights[one], margins[one] = weights[other], margins[other]
    return jnp.asarray(weights, jnp.float32), jnp.asarray(margins, jnp.float32)


def test_those_with_the_same_weights_and_margins_are_alike():
    classes = np.array([0, 1, 0, 3, 1, 0])
    np.testing.assert_array_equal(alike(*_explanations()), classes[:, None] == classes)


def test_one_pair_makes_a_difference_and_rounding_none():
    weights, margins = _explanations()
    assert alike(weights, margins.at[2].multiply(1 + 0.5 * ALIKE))[0, 2]
    assert not alike(weights, margins.at[2, 7].add(10 * ALIKE * (1 + abs(margins[2, 7]))))[0, 2]
    assert not alike(weights.at[2, 7].add(2 * ALIKE), margins)[0, 2]


def test_what_is_not_finite_is_like_itself_alone():
    weights, margins = _explanations()
    found = alike(weights, margins.at[2].set(jnp.nan).at[5].set(jnp.nan))
    assert found[2, 2]
    assert found.sum(1)[2] == found.sum(1)[5] == 1


def test_every_row_has_the_value_of_one_that_is_like_it():
    """`same` need not be transitive: 0 ~ 1 and 1 ~ 2, but not 0 ~ 2."""
    same = jnp.asarray(np.eye(4, dtype=bool) | (np.abs(np.subtract.outer(range(4), range(4))) == 1))
    found = jax.jit(lambda x: once_each(lambda row: (2.0 * row, row[0]), same, x))(jnp.eye(4))
    np.testing.assert_array_equal(found[0], 2 * np.eye(4)[[0, 0, 1, 2]])
    np.testing.assert_array_equal(found[1], np.eye(4)[[0, 0, 1, 2], 0])


def test_a_row_that_is_like_another_is_not_computed():
    calls = []
    same = alike(*_explanations())
    count = lambda row: jax.debug.callback(lambda _: calls.append(1), row) or row.sum()  # noqa: E731
    found = jax.block_until_ready(once_each(count, same, _explanations()[1]))
    jax.effects_barrier()
    assert len(calls) == 3
    np.testing.assert_allclose(found, _explanations()[1].sum(1), rtol=1e-6)


@pytest.mark.slow
def test_a_batch_is_a_loop():
    batch = [_explanations(seed) for seed in range(3)]
    call = lambda weights, margins: once_each(jnp.sum, alike(weights, margins), margins)  # noqa: E731
    weights, margins = (jnp.stack(part) for part in zip(*batch, strict=True))
    np.testing.assert_allclose(
        jax.vmap(call)(weights, margins), jnp.stack([call(*each) for each in batch]), rtol=1e-5
    )
