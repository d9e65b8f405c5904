"""Many θ at once by `solve_many` beside as many jitted calls, as the batch grows, and what bounds R-LSVI's."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from samples import WORLD, prepared, world, world_size
from test_oracles import name_of, oracles

from robust_rlhf_jax.kernels.regression import HUBER_STEPS
from robust_rlhf_jax.oracles import solve_many

# That of docs/speed.md first.
BATCHES = [256, 1, 16, 64]
LARGEST = max(BATCHES)
SCALE_PASSES = 4


def thetas_of(mdp, count):
    """θ [count, H, p] of the MDP's length."""
    thetas = jax.random.normal(jax.random.key(3), (count, *mdp.theta.shape))
    return thetas * jnp.linalg.norm(mdp.theta) / jnp.linalg.norm(thetas, axis=(1, 2), keepdims=True)


@oracles
@pytest.mark.parametrize("count", BATCHES)
def test_solve_batch(measure, beside, sized, oracle, count):
    size = sized(WORLD)
    ready, thetas = prepared(oracle, **size), thetas_of(world(**size)[0], count)
    solve, batch, rows = jax.jit(oracle.solve), jax.jit(partial(solve_many, oracle)), list(thetas)

    def one_by_one():  # all are dispatched before any is waited for
        return [solve(ready, theta) for theta in rows]

    found = measure(
        batch,
        ready,
        thetas,
        what=f"{name_of(oracle)} `solve`, {count} θ by `solve_many`",
        size=world_size(**size),
        work=(count, "solves"),
        rounds=5,
    )
    single = jnp.stack([result.value for result in jax.block_until_ready(one_by_one())])
    np.testing.assert_allclose(found.value, single, rtol=1e-3, atol=1e-3)
    beside(
        lambda: batch(ready, thetas),
        one_by_one,
        name=f"{count} jitted calls" if count > 1 else "a jitted call",
    )


def test_passes_alone(measure, sized):
    """The limit of R-LSVI's batch: its passes over the residuals of 256 θ and 5 steps, and nothing else.

    No θ shares a residual with another, so a batch can share the covariates' way through memory and the cost of
    a call, not these element-wise passes; the same passes make up the single call.
    """
    size = sized(WORLD)
    rows, dim, chunk = 2 * size["n"], size["d"], 16
    columns = jax.random.normal(jax.random.key(0), (dim, rows))
    targets = jax.random.normal(jax.random.key(1), (chunk, rows))
    zero, clip = jnp.zeros((chunk, dim)), 2.0 * jnp.ones((chunk, 1))

    @jax.jit
    def passes(columns, targets):
        def scale_pass(_, clip):
            inside = jnp.where(jnp.abs(targets) <= clip, 1.0, 0.0)
            mean = jnp.sum(inside * targets**2, axis=1) / jnp.sum(inside, axis=1)
            return jnp.sqrt(mean)[:, None] + 1.0

        def huber_pass(w, clip):
            return w + 1e-6 * jnp.clip(targets - w @ columns, -clip, clip) @ columns.T

        def one(w, _):
            level = jax.lax.fori_loop(0, SCALE_PASSES, scale_pass, clip)
            return jax.lax.fori_loop(0, HUBER_STEPS + 1, lambda _, w: huber_pass(w, level), w), None

        return jax.lax.scan(one, zero, length=size["h"] * LARGEST // chunk)[0]

    measure(
        passes,
        columns,
        targets,
        what=f"R-LSVI `solve`, {LARGEST} θ: its passes alone",
        size=world_size(**size),
        work=(LARGEST, "solves"),
        rounds=5,
    )
