"""Programs that run for seconds and would be compiled for half a minute: compiled by what XLA has that is quicker."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from robust_rlhf_jax.checks import is_traced

# XLA's older code generator for the CPU compiles the programs of a sweep in three quarters of the time of its newer
# one, and they run as fast to 3 % (docs/sweeps.md). Other platforms ignore it.
OLDER_GENERATOR = {"xla_cpu_use_fusion_emitters": False}


def quickly_compiled(**static: Any) -> Callable:
    """`jax.jit` with these arguments; where the function is traced it is part of the outer program."""

    def decorate(function: Callable) -> Callable:
        inner = jax.jit(function, **static)

        @functools.cache
        def outermost() -> Any:
            # Not when this is imported: asking initialises JAX's devices, and their number is then settled.
            return jax.jit(function, **static, compiler_options=_options())

        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            traced = any(map(is_traced, jax.tree.leaves((arguments, named))))
            return (inner if traced else outermost())(*arguments, **named)

        return call

    return decorate


@functools.cache
def _options() -> dict[str, Any] | None:
    """None where this version of XLA has no such generator any more."""
    try:
        jax.jit(lambda: jnp.zeros(()), compiler_options=OLDER_GENERATOR).lower().compile()
    except (RuntimeError, ValueError):
        return None
    return OLDER_GENERATOR
