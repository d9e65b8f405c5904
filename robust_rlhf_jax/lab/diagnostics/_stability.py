"""How stable a weighted set is: whether the guarantee of a robust mean applies to it (paper: Definition A.3)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from robust_rlhf_jax.checks import as_epsilon, as_floats, check_epsilon, is_traced
from robust_rlhf_jax.kernels.divisors import positive_or_one
from robust_rlhf_jax.kernels.lapack import eigh
from robust_rlhf_jax.kernels.linalg import (
    matmul,
    pseudo_inverse_root,
    weighted_gram,
    weighted_mean,
    weighted_second_moment,
)
from robust_rlhf_jax.kernels.quantile import keep_top

# Rounds of the ascent; each takes the worst subset for a direction, then the worst direction for that subset.
ROUNDS = 8


class Stability(eqx.Module):
    """Result of `stability`: δ lies in [`lower`, `upper`].

    `shift`, `spread`: the largest |mean − μ| and |second moment − 1| of a (1−ε)-part that were found;
    `shift_bound`, `spread_bound`: what none exceeds; `direction` [d]: the unit v that `lower` was found along.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import diagnostics
    >>> x = jax.random.normal(jax.random.key(0), (100, 2))
    >>> found = diagnostics.stability(x, 0.1)
    >>> bool(found.shift <= found.shift_bound), round(float((found.direction**2).sum()), 3)
    (True, 1.0)
    """

    lower: Float[Array, ""]
    upper: Float[Array, ""]
    shift: Float[Array, ""]
    shift_bound: Float[Array, ""]
    spread: Float[Array, ""]
    spread_bound: Float[Array, ""]
    direction: Float[Array, " d"]


def stability(
    x: Float[Array, "n d"],
    epsilon: float | Float[Array, ""],
    *,
    weights: Float[Array, " n"] | None = None,
    mean: Float[Array, " d"] | None = None,
    covariance: Float[Array, "d d"] | None = None,
) -> Stability:
    """The least δ with which weighted rows are (ε, δ)-stable, from both sides (paper: Definition A.3).

    For every unit v and every part 0 ≤ w' ≤ w with Σw' ≥ (1−ε)Σw, |E_w'[v·(x−μ)]| ≤ δ and
    |E_w'[(v·(x−μ))²] − 1| ≤ δ²/ε. Along one v the worst part is found by its order statistics; the lower end ascends
    over v, the upper end bounds what mass ε can carry by Cauchy–Schwarz and by the longest rows. The mean of a
    filter's output is within O(δ) of μ: a filter whose rows are not stable with a small δ cannot be trusted
    (Diakonikolas & Kane 2023, Definition 2.1).

    **Arguments:** `x` [n, d]; `epsilon` in (0, ½); `weights` [n] ≥ 0, None for 1; `mean` μ [d], None for the weighted
    mean; `covariance` [d, d]: rows are whitened by it on its span, None where they are white.

    **Raises:** ValueError for a wrong shape, ε outside (0, ½), or weights that are negative, not finite, or all 0.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax.lab.diagnostics import stability
    >>> x = jax.random.normal(jax.random.key(0), (100, 2))
    >>> found, worse = stability(x, 0.1), stability(x.at[:5].set(10.0), 0.1)
    >>> bool(found.lower <= found.upper), bool(found.upper < worse.lower)
    (True, True)
    """
    x = as_floats(x)
    check_epsilon(epsilon)
    if x.ndim != 2 or not jnp.issubdtype(x.dtype, jnp.floating):
        raise ValueError(f"stability takes floating-point x of shape [n, d]; got {x.dtype} {x.shape}.")
    if isinstance(epsilon, int | float) and epsilon == 0:
        raise ValueError("epsilon=0: a set is stable with respect to parts of it, give a fraction above 0.")
    weights = jnp.ones(x.shape[0], x.dtype) if weights is None else jnp.asarray(weights, x.dtype)
    if weights.shape != x.shape[:1]:
        raise ValueError(
            f"weights has shape {weights.shape}; x has {x.shape[0]} rows: give one weight a row."
        )
    if not is_traced(weights):
        values = np.asarray(weights)
        if not (np.isfinite(values) & (values >= 0)).all() or not values.any():
            raise ValueError(
                "weights must be finite and at least 0, and not all be 0: give what each row counts."
            )
    return _stability(x, as_epsilon(epsilon, x.dtype), weights, mean, covariance)


@eqx.filter_jit
def _stability(
    x: Float[Array, "n k"],
    epsilon: Float[Array, ""],
    weights: Float[Array, " n"],
    mean: Float[Array, " k"] | None,
    covariance: Float[Array, "k k"] | None,
) -> Stability:
    share = weights / jnp.sum(weights)
    rows, null = (
        x - (weighted_mean(x, share) if mean is None else mean),
        jnp.zeros((x.shape[1],) * 2, x.dtype),
    )
    if covariance is not None:
        whitener, colourer, _ = pseudo_inverse_root(covariance)
        rows, null = matmul(rows, whitener), jnp.eye(x.shape[1], dtype=x.dtype) - matmul(whitener, colourer)
    # Null directions are given the second moment 1, so that they count as neither wide nor narrow.
    second = weighted_second_moment(rows, share) + null
    axes = eigh(second)[1]
    starts = [
        weighted_mean(rows, share),
        rows[jnp.argmax(share * jnp.sum(rows**2, axis=1))],
        axes[:, 0],
        axes[:, -1],
    ]
    starts = jax.vmap(_unit)(jnp.stack(starts))

    ends = jax.vmap(lambda v: [_ascend(rows, share, epsilon, null, kind, v) for kind in SCORES])(starts)
    sizes, along = (jnp.stack(each) for each in zip(*ends, strict=True))
    shifts, spreads = sizes[:2], jnp.maximum(sizes[2:], 0.0)
    deltas = jnp.concatenate([shifts, jnp.sqrt(epsilon * spreads)]).reshape(-1)
    shift_bound, spread_bound = _bounds(rows, share, epsilon, second)
    best = jnp.argmax(deltas)
    return Stability(
        lower=deltas[best],
        upper=jnp.maximum(shift_bound, jnp.sqrt(epsilon * spread_bound)),
        shift=jnp.max(shifts),
        shift_bound=shift_bound,
        spread=jnp.max(spreads),
        spread_bound=spread_bound,
        direction=along.reshape(-1, x.shape[1])[best],
    )


def _unit(v: Float[Array, " k"]):
    norm = jnp.linalg.norm(v)
    return v / positive_or_one(norm)


# Which rows a part keeps: those far ahead along v, those far behind, those far out, those near the middle.
SCORES = {"ahead": lambda y: y, "behind": lambda y: -y, "wide": lambda y: y**2, "narrow": lambda y: -(y**2)}


def _ascend(
    rows: Float[Array, "n k"],
    share: Float[Array, " n"],
    epsilon: Float[Array, ""],
    null: Float[Array, "k k"],
    kind: str,
    start: Float[Array, " k"],
):
    """(largest |shift| or |spread| of its kind, the direction) from one start; no round lowers it."""

    def part(v):
        kept = keep_top(SCORES[kind](matmul(rows, v)), share, 1.0 - epsilon)
        return kept / jnp.sum(kept)

    def value(v):
        y = matmul(rows, v)
        if kind in ("ahead", "behind"):
            return jnp.abs(matmul(part(v), y))
        widest = matmul(part(v), y**2) + matmul(v, matmul(null, v))
        return widest - 1.0 if kind == "wide" else 1.0 - widest

    def turn(_, v):
        w = part(v)
        if kind in ("ahead", "behind"):
            return _unit(matmul(w, rows)) * (1.0 if kind == "ahead" else -1.0)
        return eigh(weighted_gram(rows, w) + null)[1][:, -1 if kind == "wide" else 0]

    end = jax.lax.fori_loop(0, ROUNDS, turn, start)
    return value(end), end


def _bounds(
    rows: Float[Array, "n k"],
    share: Float[Array, " n"],
    epsilon: Float[Array, ""],
    second: Float[Array, "k k"],
):
    """What no part of mass ≥ 1 − ε exceeds: (|shift|, |spread|).

    Mass r ≤ ε that is left out carries at most min(√(ε·λ), top_ε‖x‖) of the mean and
    min(λ, top_ε‖x‖², √(ε·‖E‖x‖²xxᵀ‖)) of the second moment along any v; λ is the largest eigenvalue of E[xxᵀ] and top_ε
    the sum over the longest rows of mass ε.
    """
    squares = jnp.sum(rows**2, axis=1)
    longest = keep_top(squares, share, epsilon)
    values = eigh(second)[0]
    least, most = values[0], values[-1]
    fourth = eigh(weighted_second_moment(rows * jnp.sqrt(squares)[:, None], share))[0][-1]
    carried = jnp.minimum(jnp.sqrt(epsilon * most), matmul(longest, jnp.sqrt(squares)))
    lost = jnp.minimum(matmul(longest, squares), jnp.sqrt(epsilon * fourth))
    shift = (jnp.linalg.norm(matmul(share, rows)) + carried) / (1.0 - epsilon)
    narrow = 1.0 - jnp.maximum(least - lost, 0.0)
    return shift, jnp.maximum(jnp.maximum(most / (1.0 - epsilon) - 1.0, narrow), 0.0)
