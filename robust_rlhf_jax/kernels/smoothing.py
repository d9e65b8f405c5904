"""Gaussian smoothing: the zeroth-order gradient, of a function that can only be evaluated (paper: Algorithm 6).

What the algorithms take for K, μ and the directions: `Smoothing` in `algorithms/pessimism_objective.py`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

DIRECTIONS = ("normal", "truncated", "orthogonal")
TRUNCATION = 4.0  # the paper's proof keeps every coordinate of u in [−4, 4]


class SmoothedGradient(NamedTuple):
    """`gradient` [k]; `standard_error` [k] of it over the directions; `value`: f(θ), or the mean over the pairs.

    With orthogonal directions the error is that of independent ones: an upper bound.
    """

    gradient: Float[Array, " k"]
    standard_error: Float[Array, " k"]
    value: Float[Array, ""]


def sample_directions(
    key: PRNGKeyArray, count: int, dim: int, kind: str = "normal", dtype: Any = jnp.float32
):
    """Directions u [count, dim] with E[uuᵀ] = I.

    "normal": independent N(0, I). "truncated": coordinates restricted to [−4, 4], then scaled to unit variance.
    "orthogonal": rows of random rotations with the lengths of normal vectors, `dim` at a time (Choromanski et
    al. 2018): each u is normal, and those of one rotation are orthogonal.
    """
    if kind == "truncated":
        u = jax.random.truncated_normal(key, -TRUNCATION, TRUNCATION, (count, dim), dtype)
        density = jnp.exp(-0.5 * TRUNCATION**2) / jnp.sqrt(2 * jnp.pi)
        inside = jax.scipy.special.erf(TRUNCATION / jnp.sqrt(2.0))
        return u / jnp.sqrt(1 - 2 * TRUNCATION * density / inside).astype(dtype)
    if kind == "orthogonal":
        k_rotation, k_length = jax.random.split(key)
        blocks = -(-count // dim)
        rotations = jax.random.orthogonal(k_rotation, dim, (blocks,), dtype).reshape(-1, dim)[:count]
        lengths = jnp.linalg.norm(jax.random.normal(k_length, (count, dim), dtype), axis=1)
        return rotations * lengths[:, None]
    return jax.random.normal(key, (count, dim), dtype)


def smoothed_gradient(
    f: Callable[[Float[Array, " k"]], Float[Array, ""]],
    theta: Float[Array, " k"],
    key: PRNGKeyArray,
    *,
    smoothing_std: Float[Array, ""],
    n_directions: int,
    directions: str = "normal",
    antithetic: bool = False,
    chunk: int = 16,
) -> SmoothedGradient:
    """g = (1/K) Σ_k [f(θ+μu_k) − f(θ)]/μ · u_k, an unbiased estimate of ∇f_μ(θ), f_μ(θ) = E f(θ+μu).

    |f_μ − f| ≤ μL√k for L-Lipschitz f, and ∇f_μ(θ) is a μL√k-subgradient of a convex f (Nesterov & Spokoiny 2017).
    `antithetic` takes pairs ±u: [f(θ+μu) − f(θ−μu)]/2μ · u over K/2 directions, exact up to rounding in every
    even part of f. f is evaluated `chunk` times at once, so that memory does not grow with K.

    **Arguments:** `theta` [k]; `smoothing_std` μ > 0; `n_directions` K, even if antithetic; f is called K + 1
    times, or K times if antithetic.
    """
    chex.assert_rank([theta, smoothing_std], [1, 0])
    count = n_directions // 2 if antithetic else n_directions
    u = sample_directions(key, count, len(theta), directions, theta.dtype)
    shifts = jnp.concatenate([u, -u]) if antithetic else jnp.concatenate([u, jnp.zeros_like(u[:1])])
    values = jax.lax.map(lambda shift: f(theta + smoothing_std * shift), shifts, batch_size=chunk)
    if antithetic:
        slopes = (values[:count] - values[count:]) / (2 * smoothing_std)
        here = jnp.mean(values)
    else:
        here = values[-1]
        slopes = (values[:-1] - here) / smoothing_std
    samples = slopes[:, None] * u
    error = jnp.std(samples, axis=0) / jnp.sqrt(max(1, count - 1))
    return SmoothedGradient(jnp.mean(samples, axis=0), error, here)
