"""Programs by the older code generator: the same numbers, in and out of a trace, and without it where there is none."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.lab.sweeps import quick_compilation
from robust_rlhf_jax.lab.sweeps.quick_compilation import quickly_compiled


@quickly_compiled(static_argnames="power")
def summed(x, power):
    return jnp.sum(jnp.sin(x) ** power, axis=-1)


def test_in_and_out_of_a_trace():
    x = jnp.linspace(0.0, 3.0, 60).reshape(5, 12)
    expected = np.sum(np.sin(np.asarray(x, float)) ** 2, axis=-1)
    for found in (
        summed(x, power=2),
        jax.jit(functools.partial(summed, power=2))(x),
        jax.vmap(lambda row: summed(row, 2))(x),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert jax.eval_shape(lambda x: summed(x, 3), x).shape == (5,)


@pytest.fixture
def asked_again():
    """What XLA has is asked once; here before and after the test, too."""
    quick_compilation._options.cache_clear()
    yield
    quick_compilation._options.cache_clear()


def test_without_the_older_generator_the_newer_compiles(asked_again, monkeypatch):
    monkeypatch.setattr(quick_compilation, "OLDER_GENERATOR", {"xla_cpu_no_such_option": False})
    assert quick_compilation._options() is None
    np.testing.assert_allclose(quickly_compiled()(lambda x: x + 1.0)(jnp.ones(2)), 2.0)


def test_importing_settles_no_devices():
    """The options are asked for at the first call."""

    @quickly_compiled()
    def never(x):
        raise AssertionError

    quick_compilation._options.cache_clear()
    quickly_compiled()(never)
    assert quick_compilation._options.cache_info().currsize == 0
