"""An alternative explanation, which contradicts the believed one and also fits the data."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax.kernels.linalg import matmul

from .config import RobustFit
from .decision import Decision, Judged, disagreement
from .suspicion import suspicion_of


class Alternative(NamedTuple):
    """`exists`: two explanations compete; `suspicion` [N]: how likely each pair is to be corrupt if the other holds."""

    exists: Bool[Array, ""]
    suspicion: Float[Array, " N"]


def alternative_to(
    judged: Judged,
    likeliest: Int[Array, ""],
    decision: Decision,
    epsilon: Float[Array, ""],
    config: RobustFit,
) -> Alternative:
    """The mean, with equal weights since their evidence differs by chance, of the explanations that disagree with the
    likeliest one on a share `contradicts` of the pairs or more.

    They must explain the labels at least as well, or need `uses`·ε and convict at most `allowance`·ε. They are shown,
    not believed: the limit on what a believed explanation may need does not apply.
    """
    disagrees = disagreement(judged.margins, judged.n_informative)[likeliest]
    ahead = decision.evidence >= decision.evidence[likeliest]
    within = decision.admissible | (judged.convicted <= config.allowance * epsilon)
    stands = (within & (judged.needed >= config.uses * epsilon)) | ahead
    eligible = stands & (disagrees >= config.contradicts)
    exists = jnp.any(eligible)
    belief = eligible / jnp.maximum(jnp.sum(eligible), 1).astype(judged.margins.dtype)
    return Alternative(exists, suspicion_of(judged, belief, 1.0 - matmul(belief, judged.lies), epsilon))
