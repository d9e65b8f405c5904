"""A function of the rows that need it: the same on every platform, and no work for the others on a CPU."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.kernels.where_needed import where_needed

K = 12


def _rows():
    rng = np.random.default_rng(0)
    return tuple(
        jnp.asarray(part, jnp.float32) for part in (rng.normal(size=(K, 3)), rng.normal(size=(K, 3)))
    )


def _function(a, b):
    return jnp.sin(a) * b


@pytest.mark.parametrize("needed", [np.arange(K) % 3 == 0, np.zeros(K, bool), np.ones(K, bool)])
def test_rows_that_need_it_and_no_others(needed):
    a, b = _rows()
    found = jax.jit(lambda needed: where_needed(_function, needed, a, a, b))(jnp.asarray(needed))
    np.testing.assert_allclose(found, np.where(needed[:, None], np.sin(a) * b, a), rtol=1e-6)


def test_a_batch_is_a_loop():
    a, b = _rows()
    needed = jnp.asarray(np.random.default_rng(1).random((4, K)) < 0.5)
    call = lambda needed: where_needed(_function, needed, a, a, b)  # noqa: E731
    np.testing.assert_array_equal(jax.vmap(call)(needed), jnp.stack([call(each) for each in needed]))


@pytest.mark.slow
@pytest.mark.skipif(jax.default_backend() != "cpu", reason="elsewhere all rows are computed at once")
def test_rows_that_do_not_need_it_cost_nothing():
    matrices = jnp.eye(300)[None] + jnp.zeros((16, 1, 1))
    slow = lambda m: jnp.linalg.inv(m) @ m  # noqa: E731
    call = jax.jit(lambda needed: where_needed(slow, needed, matrices, matrices))

    def seconds(needed):
        jax.block_until_ready(call(needed))
        best = np.inf
        for _ in range(3):
            start = time.perf_counter()
            jax.block_until_ready(call(needed))
            best = min(best, time.perf_counter() - start)
        return best

    one = jnp.arange(16) == 3
    assert seconds(one) < 0.5 * seconds(jnp.ones(16, bool))
