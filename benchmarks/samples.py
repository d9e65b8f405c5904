"""Rows and worlds that several benchmarks share."""

from functools import cache

import jax
import jax.numpy as jnp

from robust_rlhf_jax import attacks, sample_preferences
from robust_rlhf_jax.lab.worlds import random_linear_mdp

EPSILON = 0.1
WORLD = {"n": 20_000, "h": 5, "d": 6}
# The usual world, and each of its sizes smaller and larger alone.
WORLDS = [WORLD] + [
    WORLD | {name: value}
    for name, values in {"n": (5_000, 80_000), "h": (2, 10), "d": (12, 24)}.items()
    for value in values
]


def trimmed_rows(n, d):
    """(X [n, d], weights [n]): normal rows, an eighth of them trimmed away."""
    x = jax.random.normal(jax.random.key(1), (n, d))
    return jax.block_until_ready((x, (jnp.arange(n) % 8 > 0).astype(x.dtype)))


def corrupted_rows(n, d):
    """Standard normal rows [n, d]; the first tenth lies in a tight cluster at distance 2√d."""
    x = jax.random.normal(jax.random.key(0), (n, d))
    corrupted = int(EPSILON * n)
    return jax.block_until_ready(x.at[:corrupted].set(0.1 * x[:corrupted] + 2.0))


def size_of(x):
    return f"n = {x.shape[0]:,}, d = {x.shape[1]}"


@cache
def world(n, h, d):
    """(MDP with S = 60 and A = 4, n pairs of which a tenth have pushed features)."""
    mdp = random_linear_mdp(jax.random.key(0), n_states=60, n_actions=4, dim=d, horizon=h)
    clean = sample_preferences(jax.random.key(1), mdp, n)
    return jax.block_until_ready((mdp, attacks.push_features(jax.random.key(2), clean, EPSILON, mdp)))


def world_size(n, h, d):
    return f"N = {n:,}, H = {h}, d = {d}, S = 60, A = 4, ε = .1"


def world_id(size):
    return f"N={size['n']},H={size['h']},d={size['d']}"


def preparation(oracle):
    """`oracle.prepare`, compiled, of (data, ε)."""
    return jax.jit(lambda data, epsilon: oracle.prepare(data, epsilon, key=jax.random.key(0)))


@cache
def prepared(oracle, n, h, d):
    """What `solve` starts from in `world(n, h, d)`, prepared once for all benchmarks."""
    return jax.block_until_ready(preparation(oracle)(world(n, h, d)[1], jnp.float32(EPSILON)))
