"""An alternative explanation: the one that contradicts what is believed most, among those that fit the data, too."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .config import RobustFit
from .decision import Decision, Judged, disagreement
from .suspicion import suspicion_of


class Alternative(NamedTuple):
    """`exists`: two explanations compete; `suspicion` [N]: how likely each pair is to be corrupt if the other holds."""

    exists: Bool[Array, ""]
    suspicion: Float[Array, " N"]


def alternative_to(
    judged: Judged, probability: Float[Array, " E"], decision: Decision, epsilon, config: RobustFit
) -> Alternative:
    """The explanation that disagrees with the likeliest one on most pairs, on `contradicts` of them at least.

    It must explain the labels at least as well, or be admissible and need `uses`·ε.
    """
    chosen = jnp.argmax(probability)
    disagrees = disagreement(judged.margins)[chosen]
    ahead = decision.evidence >= decision.evidence[chosen]
    stands = (decision.admissible & (judged.needed >= config.uses * epsilon)) | ahead
    eligible = stands & (disagrees >= config.contradicts)
    other = jnp.argmax(jnp.where(eligible, disagrees, -1.0))
    alone = jnp.zeros_like(probability).at[other].set(1.0)
    return Alternative(jnp.any(eligible), suspicion_of(judged, alone, 1.0 - judged.lies[other], epsilon))
