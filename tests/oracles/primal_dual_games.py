"""The primal–dual oracle's two phases, compiled, and a short game, for all tests of it."""

import equinox as eqx
import jax

from robust_rlhf_jax.oracles import PrimalDual

prepare = eqx.filter_jit(lambda oracle, data, epsilon: oracle.prepare(data, epsilon, key=jax.random.key(0)))
solve = eqx.filter_jit(lambda oracle, prepared, theta: oracle.solve(prepared, theta))
SHORT = PrimalDual(steps=40, refresh=20)
