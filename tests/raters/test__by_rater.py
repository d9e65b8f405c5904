"""Sums over the pairs of each rater against a loop, for raters with none, few and many pairs in any order."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.raters._by_rater import CHUNK, RowsByRater


@pytest.mark.slow
@pytest.mark.parametrize("counts", [(3, 0, 40), (CHUNK, 2 * CHUNK, 1), (0, 0, 1), (CHUNK + 1, CHUNK - 1, 5)])
def test_sums_are_those_of_a_loop(counts):
    rng = np.random.default_rng(0)
    raters = rng.permutation(np.repeat(np.arange(3), counts)).astype(np.int32)
    rows, weights = rng.normal(size=(len(raters), 4)), rng.random(len(raters))
    t = rng.normal(size=(3, 4))
    pairs = jax.jit(RowsByRater.of, static_argnums=2)(jnp.asarray(rows), jnp.asarray(raters), 3)
    mine = [np.flatnonzero(raters == k) for k in range(3)]
    np.testing.assert_allclose(
        pairs.gram(jnp.asarray(weights)), [rows[i].T @ (weights[i, None] * rows[i]) for i in mine], atol=1e-5
    )
    np.testing.assert_allclose(pairs.sums(pairs.rows), [rows[i].sum(axis=0) for i in mine], atol=1e-5)
    np.testing.assert_allclose(
        pairs.margins(jnp.asarray(t)), np.sum(rows * t[raters], axis=1), rtol=1e-4, atol=1e-5
    )
    square = rng.normal(size=(3, 4, 4))
    np.testing.assert_allclose(
        pairs.squares(jnp.asarray(square)), [row @ square[k] @ row for row, k in zip(rows, raters, strict=True)],
        rtol=1e-4, atol=1e-5,
    )  # fmt: skip
