"""LSVI and R-LSVI: preparing once, solving for one θ, and for 256 of them at once or one by one."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax import LSVI, RLSVI, attacks, random_linear_mdp, sample_preferences, solve_many
from robust_rlhf_jax.kernels.regression import HUBER_STEPS

PAIRS, EPSILON, BATCH = 20_000, 0.1, 256
SCALE_PASSES = 4
SIZE = "N = 20,000, H = 5, d = 6, S = 60, A = 4, ε = .1"
ORACLES = [RLSVI(), LSVI()]
NAMES = {RLSVI: "R-LSVI", LSVI: "LSVI"}


@pytest.fixture(scope="module")
def world():
    """An MDP, pairs of which a tenth have pushed features, and a batch of θ [256, H, p] of its length."""
    mdp = random_linear_mdp(jax.random.key(0), n_states=60, n_actions=4, dim=6, horizon=5)
    data = sample_preferences(jax.random.key(1), mdp, PAIRS)
    data = attacks.push_features(jax.random.key(2), data, EPSILON, mdp)
    thetas = jax.random.normal(jax.random.key(3), (BATCH, *mdp.theta.shape))
    scale = jnp.linalg.norm(mdp.theta) / jnp.linalg.norm(thetas, axis=(1, 2), keepdims=True)
    return jax.block_until_ready((data, thetas * scale))


def prepare(oracle):
    """`oracle.prepare`, compiled, of (data, ε)."""
    return jax.jit(lambda data, epsilon: oracle.prepare(data, epsilon, key=jax.random.key(0)))


def name_of(oracle):
    return NAMES[type(oracle)]


oracles = pytest.mark.parametrize("oracle", ORACLES, ids=name_of)


@oracles
def test_prepare(measure, world, oracle):
    compiled, epsilon = prepare(oracle), jnp.float32(EPSILON)
    measure(
        lambda: compiled(world[0], epsilon),
        what=f"{name_of(oracle)} `prepare`",
        size=SIZE,
        group=f"{name_of(oracle)} prepare",
        rounds=5,
    )


@oracles
def test_solve(measure, world, oracle):
    prepared = jax.block_until_ready(prepare(oracle)(world[0], jnp.float32(EPSILON)))
    solve, theta = jax.jit(oracle.solve), world[1][0]
    measure(
        lambda: solve(prepared, theta),
        what=f"{name_of(oracle)} `solve`",
        size=SIZE,
        group=f"{name_of(oracle)} solve",
        rounds=20,
    )


@oracles
def test_solve_batch(measure, beside, world, oracle):
    prepared = jax.block_until_ready(prepare(oracle)(world[0], jnp.float32(EPSILON)))
    thetas, rows = world[1], list(world[1])
    solve, batch = jax.jit(oracle.solve), jax.jit(partial(solve_many, oracle))

    def one_by_one():  # all are dispatched before any is waited for
        return [solve(prepared, theta) for theta in rows]

    found = measure(
        lambda: batch(prepared, thetas),
        what=f"{name_of(oracle)} `solve`, {BATCH} θ by `solve_many`",
        size=SIZE,
        group=f"{name_of(oracle)} solve, {BATCH} θ",
        rounds=5,
    )
    single = jnp.stack([result.value for result in jax.block_until_ready(one_by_one())])
    np.testing.assert_allclose(found.value, single, rtol=1e-3, atol=1e-3)
    beside(lambda: batch(prepared, thetas), one_by_one, name=f"{BATCH} jitted calls")


@oracles
def test_solve_one_by_one(measure, world, oracle):
    prepared = jax.block_until_ready(prepare(oracle)(world[0], jnp.float32(EPSILON)))
    solve, rows = jax.jit(oracle.solve), list(world[1])
    measure(
        lambda: [solve(prepared, theta) for theta in rows],
        what=f"{name_of(oracle)} `solve`, {BATCH} calls",
        size=SIZE,
        group=f"{name_of(oracle)} solve, {BATCH} θ",
        rounds=3,
    )


def test_passes_alone(measure):
    """The limit of R-LSVI's batch: its passes over the residuals of 256 θ and 5 steps, and nothing else.

    No θ shares a residual with another, so a batch can share the covariates' way through memory and the cost of
    a call, not these element-wise passes; the same passes make up the single call.
    """
    rows, dim, chunk = 2 * PAIRS, 6, 16
    columns = jax.random.normal(jax.random.key(0), (dim, rows))
    targets = jax.random.normal(jax.random.key(1), (chunk, rows))
    zero, clip = jnp.zeros((chunk, dim)), 2.0 * jnp.ones((chunk, 1))

    def scale_pass(_, clip):
        inside = jnp.where(jnp.abs(targets) <= clip, 1.0, 0.0)
        return jnp.sqrt(jnp.sum(inside * targets**2, axis=1) / jnp.sum(inside, axis=1))[:, None] + 1.0

    def huber_pass(w, clip):
        return w + 1e-6 * jnp.clip(targets - w @ columns, -clip, clip) @ columns.T

    @jax.jit
    def passes():
        def one(w, _):
            level = jax.lax.fori_loop(0, SCALE_PASSES, scale_pass, clip)
            return jax.lax.fori_loop(0, HUBER_STEPS + 1, lambda _, w: huber_pass(w, level), w), None

        return jax.lax.scan(one, zero, length=5 * BATCH // chunk)[0]

    measure(
        passes,
        what=f"R-LSVI `solve`, {BATCH} θ: its passes alone",
        size=SIZE,
        group=f"R-LSVI solve, {BATCH} θ, limit",
        rounds=5,
    )
