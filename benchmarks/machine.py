"""What the machine itself does: the bars that a kernel's bytes and operations are held against."""

import os
import time
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np


def _seconds(run, tries=5):
    """The fastest of a few runs, the first not counted."""
    times = []
    for _ in range(tries + 1):
        start = time.perf_counter()
        jax.block_until_ready(run())
        times.append(time.perf_counter() - start)
    return min(times[1:])


def _donated_copy(x):
    """A jitted copy into the buffer of the last one: a fresh one of the size of x would be paged in every time."""
    copy = jax.jit(lambda out, x: jnp.copy(x), donate_argnums=0, keep_unused=True)
    held = [jnp.zeros_like(x)]

    def run():
        held[0] = copy(held[0], x)
        return held[0]

    return run


def _host_copies(x):
    source, target = np.asarray(x), np.empty(x.shape, x.dtype)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    parts = [slice(i * len(x) // cores, (i + 1) * len(x) // cores) for i in range(cores)]
    pool = ThreadPoolExecutor(cores)
    yield "np.copyto", lambda: np.copyto(target, source)
    yield "np.copyto by threads", lambda: list(pool.map(lambda p: np.copyto(target[p], source[p]), parts))


def fastest_copy(x):
    """(name, run) of the fastest of the copies of x [n, d] that we know: a slow one would make an easy bar."""
    copies = {"a jitted copy": _donated_copy(x)}
    if jax.default_backend() == "cpu":
        copies |= dict(_host_copies(x))
    name = min(copies, key=lambda name: _seconds(copies[name]))
    return name, copies[name]


def multiplication(size, dtype=jnp.float32):
    """(operations, run) of a square product at full precision, which is as fast as products get."""
    a = jax.random.normal(jax.random.key(0), (size, size), dtype)
    product = jax.jit(lambda a: jnp.matmul(a, a, precision="highest"))
    return 2 * size**3, lambda: product(a)


def copy_rate(n, d):
    """Bytes per second, read and written, of the fastest copy of [n, d] single-precision numbers."""
    x = jnp.ones((n, d), jnp.float32)
    return 2 * x.nbytes / _seconds(fastest_copy(x)[1])


def product_rate(small=False):
    """Operations per second of a square product of a size that keeps the device busy."""
    size = 512 if small else 2048 if jax.default_backend() == "cpu" else 8192
    operations, product = multiplication(size)
    return operations / _seconds(product)
