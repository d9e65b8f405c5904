"""Linear regression by fixed-factor reweighting: one Cholesky factor, any number of targets."""

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .divisors import positive_or_one
from .linalg import matmul

HUBER_STEPS = 8
CAUTION = 0.63
LEAST = 1.5  # clipping normal residuals closer than this would eat its own scale


def residual_scale(
    residuals: Float[Array, " n"], weights: Float[Array, " n"], multiple: Float[Array, ""]
) -> Float[Array, ""]:
    """Weighted RMS of the residuals within `multiple` RMS's of zero, by repeated clipping.

    An ε-fraction of residuals of size M makes the RMS √ε·M, so clipping at 1/√ε RMS's would just keep them: the
    first rounds clip at CAUTION times that and drop them whatever M is, the last one takes clean tails back in.
    """

    def clip(scale, times):
        inside = jnp.where(jnp.abs(residuals) <= _threshold(times * multiple, scale), weights, 0.0)
        total = jnp.sum(inside)
        # A sum of products, not a dot: XLA runs it in the same pass over the residuals.
        rms = jnp.sqrt(jnp.sum(inside * residuals**2) / positive_or_one(total))
        return jnp.where(total > 0, rms, scale)

    scale = clip(jnp.asarray(jnp.inf, residuals.dtype), 1.0)
    cautious = jnp.maximum(CAUTION, jnp.minimum(1.0, LEAST / multiple))
    for times in (cautious, cautious, 1.0):
        scale = clip(scale, times)
    return scale


def _threshold(multiple: Float[Array, ""], scale: Float[Array, ""]):
    """multiple·scale, and ∞ (not NaN) where residuals vanish and nothing is to be clipped."""
    return jnp.where(jnp.isinf(multiple), jnp.inf, multiple * scale)


def clip_level(
    residuals: Float[Array, " n"], weights: Float[Array, " n"], multiple: Float[Array, ""]
) -> Float[Array, ""]:
    """`multiple` robust standard deviations of the residuals; ∞ where nothing is to be clipped."""
    return _threshold(multiple, residual_scale(residuals, weights, multiple))


def huber_weights(
    residuals: Float[Array, " n"],
    weights: Float[Array, " n"],
    multiple: Float[Array, ""],
    least: Float[Array, ""],
) -> Float[Array, " n"]:
    """ω_i·min(1, c/|r_i|) with c = `multiple` robust standard deviations: ψ(r) = r times that (Huber & Dutter 1974).

    c is at least `least`, the size of the residuals' rounding: weights made of rounding errors would be noise.
    """
    size = jnp.abs(residuals)
    clip = jnp.maximum(clip_level(residuals, weights, multiple), least)
    return weights * jnp.where(size > clip, clip / positive_or_one(size), 1.0)


@jax.custom_jvp
def clipped(residuals: Float[Array, " n"], clip: Float[Array, ""]) -> Float[Array, " n"]:
    """ψ(r) = max(−c, min(c, r)), with the derivative of r·min(1, c/|r|) at a constant factor."""
    return jnp.clip(residuals, -clip, clip)


@clipped.defjvp
def _clipped_with_constant_factor(primals: tuple[Array, Array], tangents: tuple[Array, Array]):
    residuals, clip = primals
    size = jnp.abs(residuals)
    factor = jnp.where(size > clip, clip / positive_or_one(size), 1.0)
    return clipped(residuals, clip), factor * tangents[0]


def huber_regression(
    columns: Float[Array, "d n"],
    targets: Float[Array, " n"],
    weights: Float[Array, " n"],
    gram_root_inverse: Float[Array, "d d"],
    multiple: Float[Array, ""],
    start: Float[Array, " d"] | None = None,
    steps: int = HUBER_STEPS,
) -> Float[Array, " d"]:
    """Weighted least squares with residuals clipped at c = multiple·scale (Huber & Dutter 1974).

    w ← w + G⁺ Σ_i ω_i φ_i ψ(y_i − φ_iᵀw), ψ(r) = r·min(1, c/|r|), with the fixed G = Σ_i ω_iφ_iφ_iᵀ. Each pass is
    two products with Φ and none with d² columns, so that a batch of targets is two matrix products. `multiple`
    = ∞ is least squares, reached exactly after the first pass. ω and the clip factors are constants to a
    derivative: the result is linear in the targets.

    **Arguments:** `columns` [d, n]: Φᵀ, a covariate a row, in which both products run along the memory;
    `gram_root_inverse` [d, d]: R with RRᵀ = G⁺, as G^{-1/2} on the span of G (`pseudo_inverse_root`); `start` [d]:
    where to begin and to take the scale from, None for least squares.
    """
    chex.assert_rank([columns, targets, weights, gram_root_inverse], [2, 1, 1, 2])
    chex.assert_equal_shape_suffix([columns, targets, weights], 1)

    def solve(residuals):
        # Weighted residuals, not columns: of those there are d times as many, and a derivative would keep them.
        return matmul(gram_root_inverse, matmul(gram_root_inverse.T, matmul(columns, weights * residuals)))

    def residuals_of(w):
        return targets - matmul(w, columns)

    first = solve(targets) if start is None else start
    clip = clip_level(jax.lax.stop_gradient(residuals_of(first)), weights, multiple)

    def step(w, _):
        return w + solve(clipped(residuals_of(w), clip)), None

    return jax.lax.scan(step, first, length=steps)[0]


def huber_multiple(epsilon: Float[Array, ""]) -> Float[Array, ""]:
    """Clip at 1/√ε standard deviations: ∞ at ε = 0, where regression is plain least squares.

    With variance σ² clipping at c costs a bias of at most σ²/c, and an ε-fraction of corrupt targets at most
    ε·c: c = σ/√ε balances the two, and both are the √ε·σ of the lower bound for bounded variance.
    """
    return 1.0 / jnp.sqrt(epsilon)


def huber_mean(values: Float[Array, " n"], weights: Float[Array, " n"], multiple: Float[Array, ""]):
    """Huber's location of weighted values: `huber_regression` on a constant."""
    ones = jnp.ones((1, len(values)), values.dtype)
    root_inverse = jax.lax.rsqrt(jnp.sum(weights))[None, None]
    return huber_regression(ones, values, weights, root_inverse, multiple)[0]
