"""Algorithm 7: preparing, a solve of T = 1000 iterations, robust means included, as N, H and d grow; its moments."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rivals import assert_same, rival_run
from samples import EPSILON, WORLD, WORLDS, preparation, prepared, world, world_id, world_size

from robust_rlhf_jax.kernels import primal_dual
from robust_rlhf_jax.oracles import PrimalDual

N_STATES = 60

solve = eqx.filter_jit(lambda oracle, prepared, theta: oracle.solve(prepared, theta))
ascent_moments = jax.jit(primal_dual.ascent_moments, static_argnames="n_states")


def timed(measure, size, rounds, **settings):
    oracle = PrimalDual(**settings)
    named = "".join(f", `{name}={value!r}`" for name, value in settings.items())
    found = measure(
        solve,
        oracle,
        prepared(oracle, **size),
        world(**size)[0].theta,
        what=f"`PrimalDual` `solve`, T = {oracle.steps}{named}",
        size=world_size(**size),
        work=(oracle.steps, "iterations"),
        rounds=rounds,
    )
    assert np.isfinite(found.value)


@pytest.mark.parametrize("size", WORLDS, ids=world_id)
def test_solve(benchmark, measure, sized, size):
    benchmark.extra_info["scaling"] = sized(size)
    timed(measure, sized(size), rounds=3)


@pytest.mark.parametrize("settings", [{"refresh": 1}, {"robust_means": "spectral"}], ids=str)
def test_expensive_means(measure, sized, settings):
    """Weights renewed at every iteration; gradients filtered every 50."""
    timed(measure, sized(WORLD), rounds=2, **settings)


def test_prepare(measure, sized):
    size = sized(WORLD)
    measure(
        preparation(PrimalDual()),
        world(**size)[1],
        jnp.float32(EPSILON),
        what="`PrimalDual` `prepare`",
        size=world_size(**size),
        work=(2 * size["n"] * size["h"], "transitions"),
        rounds=5,
    )


def moments_by_numpy(phi, reward_phi, following, weights):
    weighted = phi * (weights / weights.sum())[:, None]
    landing = np.zeros((N_STATES, phi.shape[1]), phi.dtype)
    np.add.at(landing, following, weighted)
    return weighted.T @ reward_phi, weighted.T @ phi, landing


def moments_by_torch(phi, reward_phi, following, weights):
    import torch

    weighted = phi * (weights / weights.sum())[:, None]
    landing = torch.zeros(N_STATES, phi.shape[1]).to(phi).index_add_(0, following, weighted)
    return weighted.T @ reward_phi, weighted.T @ phi, landing


MOMENTS = {"NumPy": moments_by_numpy, "PyTorch": moments_by_torch}


@pytest.mark.parametrize("rival", MOMENTS)
def test_ascent_moments(measure, beside, rows, rival):
    """One step's data reduced to what the gradients need: two products and a sum by next state."""
    n, d = rows(400_000), 6
    k_phi, k_next = jax.random.split(jax.random.key(0))
    phi = jax.random.uniform(k_phi, (n, d))
    arrays = (phi, phi, jax.random.randint(k_next, (n,), 0, N_STATES), jnp.ones(n))
    name, run = rival_run(rival, MOMENTS, arrays)
    found = measure(
        ascent_moments,
        *arrays,
        N_STATES,
        what="`ascent_moments`",
        size=f"n = {n:,}, d = {d}, S = {N_STATES}",
        work=(n, "rows"),
    )
    assert_same(found, run(), atol=1e-3)
    beside(lambda: ascent_moments(*arrays, N_STATES), run, name=name)
