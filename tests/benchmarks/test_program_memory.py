"""The compiler's account of a program's memory."""

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest


@pytest.mark.parametrize("jit", [jax.jit, eqx.filter_jit])
def test_arguments_and_outputs_are_counted(jit):
    from program_memory import peak_memory_bytes

    x = jnp.ones(1024, jnp.float32)
    assert peak_memory_bytes(jit(lambda x: x + 1), x) == pytest.approx(
        2 * x.nbytes, abs=64
    )  # tables of pointers


def test_a_donated_buffer_counts_once():
    from program_memory import peak_memory_bytes

    x = jnp.ones(1024, jnp.float32)
    assert peak_memory_bytes(jax.jit(lambda x: x + 1, donate_argnums=0), x) == pytest.approx(x.nbytes, abs=64)


def test_temporaries_are_counted():
    from program_memory import peak_memory_bytes

    x = jnp.ones(1024, jnp.float32)
    held = peak_memory_bytes(jax.jit(lambda x: jnp.sort(jnp.outer(x, x)).sum()), x)
    assert held >= x.nbytes * x.shape[0]


def test_a_call_made_before_is_not_compiled_again(count_compilations):
    from program_memory import peak_memory_bytes

    program, x = jax.jit(lambda x: 2 * x), jnp.ones(8)
    program(x)
    with count_compilations() as count:
        peak_memory_bytes(program, x)
    assert count.compiled == []


def test_what_is_not_jitted_has_none():
    from program_memory import peak_memory_bytes

    assert peak_memory_bytes(lambda x: x, 1) is None
