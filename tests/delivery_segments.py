"""The delivery grid at test size, and comparisons of four steps in it."""

import functools

import jax

from robust_rlhf_jax import sample_segments
from robust_rlhf_jax.lab.worlds import delivery_grid


@functools.cache
def grid():
    return delivery_grid(jax.random.key(0), size=4, horizon=10)


@functools.cache
def segments(n_pairs: int):
    return sample_segments(jax.random.key(1), grid(), n_pairs, 4, temperature=0.18)
