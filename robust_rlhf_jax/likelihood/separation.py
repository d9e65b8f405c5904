"""Whether the pairs that a fit keeps leave some direction of θ without a best length.

By eigenvalues, tested against a linear program in `tests/likelihood/test_trimmed.py`; `rewards/prior_strength.py` asks
the same in whitened coordinates (`at_bound`).
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from robust_rlhf_jax.kernels.lapack import eigh
from robust_rlhf_jax.kernels.linalg import matmul, pseudo_inverse_root, weighted_gram, weighted_second_moment
from robust_rlhf_jax.kernels.logistic import label_variance
from robust_rlhf_jax.kernels.units import (
    LONGEST_IN_SCALES,
    in_units,
    shortened,
    typical_powers,
    unit_free_lengths,
)

# Mean of P(1 − P) along a direction below which it counts as separated, and the most that rounding may raise it to:
# the levels of `rewards/prior_strength.py`.
FLAT, FLAT_AT_MOST = 5e-5, 1e-3


def all_won(
    x: Float[Array, "n k"], weights: Float[Array, " n"], margins: Float[Array, " n"]
) -> Bool[Array, ""]:
    """Whether θ explains every pair of positive weight, rows of zeros excepted: twice θ then explains them better."""
    counts = (weights > 0) & jnp.any(x != 0, axis=1)
    return jnp.any(counts) & jnp.all(jnp.where(counts, margins > 0, True))


def some_direction_flat(
    x: Float[Array, "n k"],
    weights: Float[Array, " n"],
    margins: Float[Array, " n"],
    epsilon: Float[Array, ""],
) -> Bool[Array, ""]:
    """Whether P(1 − P), averaged along some direction of the span with weights (vᵀx_n)², is next to nothing.

    So it is along a feature that decided every pair which shows it, although other pairs are lost. Rows count as
    at most `LONGEST_IN_SCALES` typical ones: of far rows a fit is sure, and that says nothing of the others.
    """
    rows = in_units(x, typical_powers(x))
    rows = shortened(rows, unit_free_lengths(rows, epsilon), LONGEST_IN_SCALES)
    whitener, _, rank = pseudo_inverse_root(weighted_second_moment(rows, weights))
    information = weighted_gram(rows, weights * label_variance(margins)) / jnp.sum(weights)
    values = eigh(matmul(whitener, matmul(information, whitener)))[0]
    least = values[jnp.clip(x.shape[1] - rank, 0, x.shape[1] - 1)]
    level = min(max(4 * float(jnp.finfo(x.dtype).eps) * len(x), FLAT), FLAT_AT_MOST)
    return (least < level) & (rank > 0)
