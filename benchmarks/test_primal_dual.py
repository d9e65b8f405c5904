"""Algorithm 7: one solve of T = 1000 iterations, robust means included, and how it scales with N, H and d."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax import PrimalDual, random_linear_mdp, sample_preferences

EPSILON = 0.1
BASE = {"n": 20_000, "h": 5, "d": 6}
SIZES = [BASE] + [
    BASE | {name: value}
    for name, values in {"n": (5_000, 80_000), "h": (2, 10), "d": (12, 24)}.items()
    for value in values
]
solve = eqx.filter_jit(lambda oracle, prepared, theta: oracle.solve(prepared, theta))


def run_of(oracle, n, h, d):
    mdp = random_linear_mdp(jax.random.key(0), n_states=60, n_actions=4, dim=d, horizon=h)
    data = sample_preferences(jax.random.key(1), mdp, n)
    prepare = eqx.filter_jit(lambda x: oracle.prepare(x, jnp.float32(EPSILON), key=jax.random.key(0)))
    prepared = jax.block_until_ready(prepare(data))
    return lambda: solve(oracle, prepared, mdp.theta)


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"N={s['n']},H={s['h']},d={s['d']}")
def test_solve(benchmark, measure, size):
    run = run_of(PrimalDual(), **size)
    benchmark.extra_info["scaling"] = size
    found = measure(
        run,
        what="`PrimalDual` `solve`, T = 1000",
        size=f"N = {size['n']:,}, H = {size['h']}, A = 4, d = {size['d']}, ε = .1",
        group=f"PrimalDual {size}",
        rounds=3,
    )
    assert np.isfinite(found.value)


@pytest.mark.parametrize("settings", [{"refresh": 1}, {"robust_means": "spectral"}], ids=str)
def test_dearer_means(measure, settings):
    """Weights renewed at every iteration; gradients filtered every 50."""
    measure(
        run_of(PrimalDual(**settings), **BASE),
        what="`PrimalDual` `solve`, T = 1000, " + ", ".join(f"`{k}={v!r}`" for k, v in settings.items()),
        size="N = 20,000, H = 5, A = 4, d = 6, ε = .1",
        group=f"PrimalDual {settings}",
        rounds=2,
    )
