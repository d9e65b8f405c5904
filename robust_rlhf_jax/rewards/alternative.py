"""An alternative explanation: the one that contradicts the believed one most, among those that fit the data, too."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax.kernels.linalg import matmul

from .coordinates import Pairs
from .explanations import Explanations
from .proposals import believed_rows
from .selection import judge
from .suspicion import suspicion_of

# An alternative prefers the other trajectory in at least this share of the pairs.
CONTRADICTS = 0.3
# One that does not score higher than what is believed has to use this share of the ε that it is allowed.
EXPLAINS = 0.9
# Share left out, in ε, by the trimmed fit that starts from −plain: liars may have decided every other start.
OPPOSITE = 1.5


class Alternative(NamedTuple):
    """`exists`: two explanations compete; `suspicion` [N]: how likely each pair is to be corrupt if the other holds."""

    exists: Bool[Array, ""]
    suspicion: Float[Array, " N"]


def no_alternative(pairs: Pairs) -> Alternative:
    return Alternative(jnp.asarray(False), jnp.zeros_like(pairs.o))


def alternative_to(
    chosen: Int[Array, ""],
    pairs: Pairs,
    explanations: Explanations,
    plain: Float[Array, " r"],
    epsilon: Float[Array, ""],
) -> Alternative:
    """Among the explanations and the trimmed fit from −`plain`, the one that disagrees with `chosen` on most pairs.

    It must disagree on `CONTRADICTS` of them, and either score at least as high as `chosen` or be admissible and leave
    out nearly ε.
    """
    weights, t = believed_rows(pairs, 1.0 - OPPOSITE * epsilon, -plain, jnp.asarray(True))
    every = Explanations(
        jnp.concatenate([explanations.t, t[None]]),
        jnp.concatenate([explanations.weights, weights[None]]),
        jnp.concatenate([explanations.by_evidence, jnp.zeros(1, bool)]),
        explanations.doubted,
    )
    found = judge(pairs, every, epsilon)
    prefers = jnp.sign(matmul(every.t, pairs.z.T))
    disagrees = jnp.mean(prefers * prefers[chosen] < 0, axis=1, dtype=plain.dtype)
    left_out = 1.0 - jnp.mean(every.weights, axis=1)
    stands = found.admissible & (left_out >= EXPLAINS * epsilon) | (found.scores >= found.scores[chosen])
    eligible = stands & (disagrees >= CONTRADICTS)
    other = jnp.argmax(jnp.where(eligible, disagrees, -1.0))
    suspicion = suspicion_of(pairs, every.t[other], every.weights[other], epsilon)
    return Alternative(jnp.any(eligible), suspicion)
