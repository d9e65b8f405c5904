"""How likely each pair is to be corrupt under the explanations that are believed: contradicted alone, or in a crowd.

Their order: `kernels/ranking.py`.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from robust_rlhf_jax.kernels.linalg import matmul

from .decision import Judged

# The least rate of corruption, so that labels are ranked even if none is contradicted.
LEAST = 0.01
# Margins count up to here (beyond, by a thousandth), so that nothing rounds to certainty.
SUREST = 6.0


def suspicion_of(
    explanations: Judged,
    probability: Float[Array, " E"],
    weights: Float[Array, " N"],
    epsilon: Float[Array, ""],
) -> Float[Array, " N"]:
    """Σ_e p_e·π/(π + (1 − π)P_e(o|x)) in [0, 1]; pairs that were left out are in the upper half.

    π is the rate of corruption among pairs like this one (`contamination`) where the label contradicts e, and half of ε
    at least: planted rows resemble each other, and honest surprises do not.
    """
    least = 0.5 * jnp.maximum(epsilon, LEAST)
    margins = explanations.margins
    contradiction = jnp.minimum(-margins, SUREST) + 1e-3 * jnp.clip(-margins - SUREST, 0.0, 1e3)
    rate = jnp.maximum(jnp.where(margins < 0, explanations.rates, 0.0), least)
    odds = jnp.log(rate) - jnp.log1p(-rate) - jax.nn.log_sigmoid(-contradiction)
    lie = matmul(probability, jax.nn.sigmoid(odds))
    return jnp.clip(lie * (0.5 + 0.5 * weights) + 0.5 * (1.0 - weights), 0.0, 1.0)
