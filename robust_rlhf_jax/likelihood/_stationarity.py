"""How far a trimmed fit is from a stationary point (paper: γ-stationarity, Lemma 3.1)."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from robust_rlhf_jax.checks import as_epsilon, as_floats, check_epsilon, check_labels
from robust_rlhf_jax.kernels.ball import ball_residual
from robust_rlhf_jax.kernels.divisors import positive_or_one
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.kernels.quantile import keep_top
from robust_rlhf_jax.row_order import check_rows


def stationarity(
    theta: Float[Array, " k"],
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: float | Float[Array, ""],
    *,
    target: Float[Array, " k"] | None = None,
    radius: float | Float[Array, ""] = float("inf"),
) -> Float[Array, ""]:
    """The least γ for which θ̂ is a γ-stationary point of the trimmed likelihood (paper: the display before Lemma 3.1).

    γ = (1/n)Σ_{i∈Ŝ} ∇log P_θ̂(o_i | x_i)ᵀu with Ŝ the (1−ε)n most likely pairs under θ̂ (ties share) and
    u = (θ★ − θ̂)/‖θ★ − θ̂‖. Where θ★ is not known, the largest γ over all θ★ of the ball: the length of the
    gradient, less what points out of the ball where θ̂ lies on its sphere.

    **Arguments:** `theta` θ̂ [k]; `x` [n, k]; `labels` [n] ±1; `epsilon` in [0, ½); `target`: θ★ [k] or None; `radius`:
    bound on ‖θ‖₂, ∞ for none.

    **Raises:** ValueError for ε outside [0, ½), labels other than ±1, shapes that do not fit, or rows in two
    orders.

    **Example:**

    >>> import jax.numpy as jnp
    >>> from robust_rlhf_jax.likelihood import stationarity
    >>> x, labels = jnp.array([[1.0], [1.0], [1.0]]), jnp.array([1.0, 1.0, -1.0])
    >>> [round(float(stationarity(jnp.array([theta]), x, labels, 0.0)), 3) for theta in (0.0, 0.693)]
    [0.167, 0.0]
    """
    check_rows(x=x, labels=labels)
    check_epsilon(epsilon)
    check_labels(labels)
    x = as_floats(x)
    theta, labels = jnp.asarray(theta, x.dtype), jnp.asarray(labels, x.dtype)
    if x.ndim != 2 or (theta.shape, labels.shape) != (x.shape[1:], x.shape[:1]):
        raise ValueError(
            f"stationarity takes x [n, k], theta [k] and labels [n]; got {x.shape}, {theta.shape}, {labels.shape}."
        )
    return _stationarity(theta, x, labels, as_epsilon(epsilon, x.dtype), target, jnp.asarray(radius, x.dtype))


@jax.jit
def _stationarity(
    theta: Float[Array, " k"],
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    target: Any,
    radius: Float[Array, ""],
):
    margins, n = labels * matmul(x, theta), len(x)
    kept = keep_top(margins, jnp.ones(n, x.dtype), (1.0 - epsilon) * n)
    slope = matmul(kept * labels * jax.nn.sigmoid(-margins), x) / n
    if target is None:
        return jnp.linalg.norm(ball_residual(theta, slope, radius))
    away = jnp.asarray(target, x.dtype) - theta
    length = jnp.linalg.norm(away)
    return matmul(slope, away) / positive_or_one(length)


def stationarity_bound(
    epsilon: float | Float[Array, ""],
    *,
    longest: float | Float[Array, ""],
    distance: float | Float[Array, ""],
) -> Float[Array, ""]:
    """max{2Lε, ε²/‖θ★ − θ̂‖}: the γ that Algorithm 2 reaches at η = ε² (paper: Lemma 3.1, the constant of its proof).

    **Arguments:** `longest`: L ≥ ‖x_n‖; `distance`: ‖θ★ − θ̂‖.

    **Example:**

    >>> from robust_rlhf_jax.likelihood import stationarity_bound
    >>> round(float(stationarity_bound(0.1, longest=2.0, distance=1.0)), 3)
    0.4
    """
    epsilon = jnp.asarray(epsilon)
    return jnp.maximum(2.0 * longest * epsilon, epsilon**2 / distance)
