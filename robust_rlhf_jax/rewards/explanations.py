"""The rewards that might explain a data set: how far each is believed, and which pairs decide between two."""

from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.kernels.linalg import matmul

from .config import RobustFit


class Explanations(NamedTuple):
    """The rewards that might explain the pairs, by rows; row 0 is maximum likelihood on all pairs.

    `theta` [E, k]; `probability` [E]: how far each is believed; `weights` [E, N]: the chance that it leaves each pair
    honest; `needed` [E]: the share of the pairs that is corrupt if it is right; `evidence` [E]: nats by which it
    explains the labels better than any reward does without corruption; `differs` [E]: the share of the pairs in which
    it prefers another option than the likeliest one.
    """

    theta: Float[Array, "E k"]
    probability: Float[Array, " E"]
    weights: Float[Array, "E N"]
    needed: Float[Array, " E"]
    evidence: Float[Array, " E"]
    differs: Float[Array, " E"]

    def mean_probability(
        self, label_noise: Float[Array, ""], differences: Float[Array, "*b k"]
    ) -> Float[Array, "*b"]:
        """(1 − ν)Σ_e p_e σ(θ_eᵀx) + ν/2, ν the `label_noise`."""
        each = jax.nn.sigmoid(matmul(differences, self.theta.T))
        return (1.0 - label_noise) * matmul(each, self.probability) + 0.5 * label_noise

    @property
    def likeliest(self) -> int:
        """The row that is believed most. Not under jit."""
        return int(np.argmax(np.asarray(self.probability)))

    def contending(self, config: RobustFit | None = None) -> int | None:
        """The row that is believed most of those which prefer other options than the likeliest one, or None.

        It counts from `contends` of belief on, and from that share of the pairs in which it prefers another option, or
        leaves out others. Not under jit.
        """
        least = (config or RobustFit()).contends
        believed = np.asarray(self.weights)
        accuses = np.mean(np.abs(believed - believed[self.likeliest]) > 0.5, axis=1)
        apart = np.maximum(np.asarray(self.differs), accuses) > least
        belief = np.where(apart, np.asarray(self.probability), 0.0)
        other = int(np.argmax(belief))
        return other if belief[other] >= least else None

    def deciding(self, most: int = 20) -> Int[np.ndarray, " M"]:
        """The pairs that only one of the likeliest and the contending reward leaves honest, those on which they differ
        most first; none where no other contends. Not under jit.
        """
        other = self.contending()
        if other is None:
            return np.zeros(0, int)
        apart = np.abs(np.asarray(self.weights[self.likeliest] - self.weights[other]))
        order = np.argsort(-apart, kind="stable")
        return order[apart[order] > 0.5][:most]
