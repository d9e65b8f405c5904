"""The compilation counter must itself be able to count, or every test that uses it is empty."""

import os

import jax
import jax.numpy as jnp
import pytest


def test_counter_sees_a_compilation_and_its_absence(count_compilations):
    double = jax.jit(lambda x: 2 * x + 1)
    short, long = jnp.ones(5), jnp.ones(6)
    with count_compilations() as first:
        double(short)
    with count_compilations() as second:
        double(short)
    with count_compilations() as new_shape:
        double(long)
    assert len(first.compiled) == 1
    assert first.traced
    assert second.compiled == second.traced == []
    assert len(new_shape.compiled) == 1


def test_counters_nest_and_stop_counting(count_compilations):
    x = jnp.ones(7)
    with count_compilations() as outer:
        with count_compilations() as inner:
            jax.jit(lambda v: v - 3)(x)
        jax.jit(lambda v: v - 4)(x)
    jax.jit(lambda v: v - 5)(x)
    assert len(inner.compiled) == 1
    assert len(outer.compiled) == 2


def test_x64_is_local(x64):
    assert jnp.zeros(()).dtype == jnp.float64
    with jax.enable_x64(False):
        assert jnp.zeros(()).dtype == jnp.float32


def test_numpy_has_the_threads_that_it_was_told():
    """Also without workers: two threads of BLAS that wait for a core take a hundred times as long."""
    threadpoolctl = pytest.importorskip("threadpoolctl")
    libraries = threadpoolctl.threadpool_info()
    threads = [library["num_threads"] for library in libraries if library["internal_api"] == "openblas"]
    assert set(threads) <= {int(os.environ["OPENBLAS_NUM_THREADS"])}
