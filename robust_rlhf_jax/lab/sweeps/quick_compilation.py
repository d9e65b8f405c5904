"""Compile the programs of a sweep with XLA's older CPU code generator, which takes less time than its newer one."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from robust_rlhf_jax.checks import is_traced

# It takes three quarters of the newer one's time, and the programs run 3 % slower (docs/sweeps.md). Other platforms
# ignore the option.
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
    """The options of the generator; None if this version of XLA no longer has it."""
    try:
        jax.jit(lambda: jnp.zeros(()), compiler_options=OLDER_GENERATOR).lower().compile()
    except (RuntimeError, ValueError):
        return None
    return OLDER_GENERATOR
