"""The scale of margins at which the crowd is as sure as they say."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

# Newton's steps; the size of margins that are not made smaller.
ROUNDS, PLAIN = 10, 1.0


def unit_of(margins: Float[Array, " N"]) -> Float[Array, ""]:
    """c ≥ 0 that maximises Σ_n log σ(c m_n), so that c m is the same whatever the margins were multiplied with.

    Labels that contradict margins as often as they follow them have their best c near 0: no margins are made smaller
    than `PLAIN` on average, and those that already are keep their size. Where nothing is contradicted, c grows by a
    step a round. Jit-able.

    **Example:**

    >>> import jax.numpy as jnp
    >>> from robust_rlhf_jax.raters._unit import unit_of
    >>> margins = jnp.array([2.0, 1.0, -1.0, 3.0])
    >>> round(float(unit_of(margins) / unit_of(20 * margins)), 3)
    20.0
    """

    def newton(_, c):
        # From 0 on the gradient falls and is convex: no step goes too far.
        chance = jax.nn.sigmoid(-c * margins)
        gradient = jnp.sum(chance * margins)
        curvature = jnp.sum(chance * (1.0 - chance) * margins**2)
        return jnp.maximum(
            c + jnp.where(curvature > 0, gradient / jnp.where(curvature > 0, curvature, 1.0), 0.0), 0.0
        )

    sure = jax.lax.fori_loop(0, ROUNDS, newton, jnp.zeros((), margins.dtype))
    size = jnp.mean(jnp.abs(margins))
    return jnp.maximum(sure, jnp.minimum(1.0, PLAIN / jnp.where(size > 0, size, PLAIN)))
