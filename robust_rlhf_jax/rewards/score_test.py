"""Whether the labels of suspect pairs contradict the rest: those that do not come back, whatever the law of x."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax.kernels.divisors import positive_or_one
from robust_rlhf_jax.kernels.lapack import cholesky, cholesky_solve
from robust_rlhf_jax.kernels.linalg import matmul, weighted_sum
from robust_rlhf_jax.likelihood.confidence import chi_square_quantile

from .coordinates import Pairs
from .weighted_fit import information, missed

# Chance that honest suspects are contradicted, one test at a time.
MISS = 1e-3
# Honest suspects may follow slopes that differ from the rest's by this share: people's choices are not quite linear.
NONLINEARITY = 0.25
ROUNDS, CHUNKS = 8, 40


def contradicting(
    pairs: Pairs,
    suspects: Float[Array, " N"],
    t: Float[Array, " r"],
    factor: Float[Array, "r r"],
    left: Float[Array, ""],
    overdispersion: Float[Array, ""] | float,
) -> tuple[Float[Array, " N"], Bool[Array, ""]]:
    """(mask [N] of suspects that go now, whether the rest of them may come back).

    With t fitted to the rest, information F_K with the lower `factor`, an honest suspect's score r·o·z has mean 0 and
    the suspects' sum S has covariance F_C + F_C F_K⁻¹ F_C (the second term: t is uncertain itself), times
    `overdispersion` where labels of one rater hang together. T = Sᵀ(…)⁻¹S is about χ² with rank(z) degrees if they
    follow the same t. While T is above its .999 quantile, raised by `NONLINEARITY`, the suspects with the largest share
    in it go, a fortieth at a time, up to the mass that is `left`. A direction that suspects alone cover has no F_K:
    nothing in it is ever contradicted.

    **Source:** Rao's score test (1948); White 1982 for its covariance.
    """
    margins = pairs.margins(t)
    r, eye = len(t), jnp.eye(len(t), dtype=t.dtype)
    theirs = information(pairs, suspects, margins)
    scores = suspects * missed(margins) * pairs.o
    total = weighted_sum(scores, pairs.z)
    covariance = theirs + matmul(theirs, cholesky_solve(factor, theirs))
    scale = jnp.trace(covariance) / r
    ridge = 16 * jnp.finfo(t.dtype).eps * r * positive_or_one(scale)
    precision = cholesky_solve(cholesky(overdispersion * covariance + ridge * eye), eye)
    share = scores * matmul(pairs.z, matmul(precision, total))
    # What the test says when the first 0, 1, …, CHUNKS chunks are out.
    chunk = _chunks(share, suspects)
    columns = jnp.concatenate([scores[:, None] * pairs.z, suspects[:, None]], axis=1)
    out_before = jnp.tri(CHUNKS + 1, CHUNKS, -1, dtype=t.dtype)
    out = matmul(out_before, jax.ops.segment_sum(columns, chunk, CHUNKS))
    rest, gone = total - out[:, :-1], out[:, -1]
    statistic = jnp.sum(matmul(rest, precision) * rest, axis=1)
    tilt = matmul(theirs, t)
    shift = NONLINEARITY * jnp.sqrt(jnp.dot(tilt, matmul(precision, tilt)))
    level = (jnp.sqrt(chi_square_quantile(1.0 - MISS, pairs.rank)) + shift) ** 2
    affordable = gone <= left + 1e-3
    accepted = (statistic <= level) & affordable
    settled = jnp.any(accepted)
    least = jnp.argmin(jnp.where(affordable, statistic, jnp.inf))
    cut = jnp.where(settled, jnp.argmax(accepted), least)
    # Nothing more to gain in this direction, or nothing left to spend: the others come back.
    settled = settled | (cut == 0)
    return ((suspects > 0) & (chunk < cut)).astype(t.dtype), settled


def _chunks(share: Float[Array, " N"], suspects: Float[Array, " N"]) -> Int[Array, " N"]:
    """The chunk of each pair: suspects in falling order of their share, in `CHUNKS` parts of equal mass."""
    order = jnp.argsort(jnp.where(suspects > 0, -share, jnp.inf))
    mass = jnp.cumsum(suspects[order])
    part = jnp.minimum((mass / jnp.maximum(mass[-1], 1e-30) * CHUNKS).astype(jnp.int32), CHUNKS - 1)
    return jnp.zeros_like(part).at[order].set(part)
