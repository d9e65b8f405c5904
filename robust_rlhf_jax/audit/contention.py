"""Two rewards that both explain a file: what each says, and which pairs tell them apart."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import expit

from robust_rlhf_jax.kernels.ranking import highest_first
from robust_rlhf_jax.rewards import Explanations


class Contention(NamedTuple):
    """Axis [2] is the likeliest reward, and the one that contends with it.

    `theta` [2, k]; `probability` [2]: how far each is believed; `needed` [2]: the share of the pairs that is corrupt if
    it is right; `fits`: how many of the robust fits found two rewards that contend.
    """

    theta: Float[np.ndarray, "2 k"]
    probability: Float[np.ndarray, " 2"]
    needed: Float[np.ndarray, " 2"]
    fits: int = 1

    def disagreement(self, x: Float[np.ndarray, "N k"]) -> Float[np.ndarray, " N"]:
        """|P₁ − P₂| of each pair: how much its label tells about which of the two is right."""
        first, second = (expit(x @ t) for t in self.theta)
        return np.abs(first - second)

    def deciding(self, x: Float[np.ndarray, "N k"], most: int) -> Int[np.ndarray, " M"]:
        """The pairs about which the two differ most."""
        return highest_first(self.disagreement(x))[:most]

    @property
    def sentence(self) -> str:
        """What a reader should know first."""
        one, other = self.probability
        return (
            f"Two rewards explain the labels ({one:.0%} and {other:.0%} likely): with one {self.needed[0]:.1%} of the "
            f"pairs are corrupt, with the other {self.needed[1]:.1%}. New labels of pairs on which they differ decide."
        )


def contention_of(found: Explanations | None) -> Contention | None:
    """The two rewards of one fit that contend, if any do."""
    other = None if found is None else found.contending()
    if found is None or other is None:
        return None
    rows = np.asarray([found.likeliest, other])
    theta, probability, needed = (
        np.asarray(part)[rows] for part in (found.theta, found.belief, found.needed)
    )
    return Contention(theta, probability, needed)


def strongest(found: list[Contention | None], to_x: Float[np.ndarray, "k r"]) -> Contention | None:
    """The contention of the fit in which the second reward is believed most, θ per unit of x, and how many had one."""
    there = [c for c in found if c is not None]
    if not there:
        return None
    most = max(there, key=lambda c: c.probability[1])
    return most._replace(theta=most.theta @ to_x.T, fits=len(there))
