"""The rewards that might explain a data set: how far each is believed, and which pairs decide between two.

`decision.py` decides how far.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.kernels.ranking import highest_first
from robust_rlhf_jax.likelihood.davidson import tie_chances

from .config import RobustFit
from .contamination import NoiseByMargin

# Upper bound on the probability that a label means nothing: some of the pairs of any kind were believed.
NOISIEST = 0.9


def noisy_chances(
    margins: Float[Array, "E ..."], noise: NoiseByMargin, label_noise: Float[Array, ""]
) -> Float[Array, "E ..."]:
    """(1 − ν)σ(m) + ν/2 of the margins of each explanation, 1 − ν = (1 − `label_noise`)(1 − the rate at |m|).

    Where an explanation calls most labels corrupt, it has no honest ones to show for its probabilities.
    """
    local = jax.vmap(NoiseByMargin.at)(noise, margins)
    nu = jnp.minimum(1.0 - (1.0 - label_noise) * (1.0 - local), NOISIEST)
    return (1.0 - nu) * jax.nn.sigmoid(margins) + 0.5 * nu


class Explanations(NamedTuple):
    """The rewards that might explain the pairs, by rows; row 0 is maximum likelihood on all pairs.

    `theta` [E, k]; `probability` [E]: how far each is believed; `weights` [E, N]: the chance that it leaves each pair
    honest; `needed` [E]: the share of the pairs that is corrupt if it is right; `evidence` [E]: nats by which it
    explains the labels better than any reward does without corruption; `differs` [E]: the share of the pairs in which
    it prefers another option than the likeliest one, or that only one of the two accuses, whichever is more; `belief`
    [E]: in it and in those that hardly differ from it, each counted for the likeliest one alone if it hardly differs
    from that; `leading`: the number of the likeliest row; `noise`: the rate of corruption by |margin|, 0 where no
    corruption is believed.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax import fit_reward, load_rail_choices
    >>> found = fit_reward(load_rail_choices()).explanations
    >>> found.likeliest, found.contending(), len(found.deciding()), round(float(np.sum(found.probability)), 3)
    (0, None, 0, 1.0)
    """

    theta: Float[Array, "E k"]
    probability: Float[Array, " E"]
    weights: Float[Array, "E N"]
    needed: Float[Array, " E"]
    evidence: Float[Array, " E"]
    differs: Float[Array, " E"]
    belief: Float[Array, " E"]
    leading: Int[Array, ""]
    noise: NoiseByMargin

    def mean_probability(
        self, label_noise: Float[Array, ""], differences: Float[Array, "*b k"]
    ) -> Float[Array, "*b"]:
        """Σ_e p_e [(1 − ν_e)σ(θ_eᵀx) + ν_e/2], 1 − ν_e = (1 − `label_noise`)(1 − the rate at |θ_eᵀx|)."""
        margins = jnp.moveaxis(matmul(differences, self.theta.T), -1, 0)
        each = noisy_chances(margins, self.noise, label_noise)
        return jnp.tensordot(self.probability, each, axes=1, precision="highest")

    def outcome_probabilities(
        self, label_noise: Float[Array, ""], tie: Float[Array, ""], differences: Float[Array, "*b k"]
    ) -> Float[Array, "*b 3"]:
        """P(first), P(tie), P(second): each explanation's ties, and its `mean_probability` of decided pairs."""
        margins = jnp.moveaxis(matmul(differences, self.theta.T), -1, 0)
        tied = tie_chances(margins, tie)
        first = noisy_chances(margins, self.noise, label_noise)
        each = jnp.stack([(1.0 - tied) * first, tied, (1.0 - tied) * (1.0 - first)], axis=-1)
        return jnp.tensordot(self.probability, each, axes=1, precision="highest")

    @property
    def likeliest(self) -> int:
        """The row that is believed most, with those that hardly differ from it. Not under jit."""
        return int(self.leading)

    def contending(self, config: RobustFit | None = None) -> int | None:
        """The row that is believed most of those that differ from the likeliest one, or None.

        It counts from `plausible` of belief on, and where it `differs` in that share of the pairs. Not under jit.
        """
        least = (config or RobustFit()).plausible
        belief = np.where(np.asarray(self.differs) > least, np.asarray(self.belief), 0.0)
        other = int(np.argmax(belief))
        return other if belief[other] >= least else None

    def ahead(self) -> Float[np.ndarray, " E"]:
        """Nats by which each row explains the pairs better than the likeliest one. Not under jit."""
        # The plain fit may have less than no evidence, but it needs none.
        return np.asarray(self.evidence) - max(float(self.evidence[self.likeliest]), 0.0)

    def beyond(self, config: RobustFit | None = None) -> int | None:
        """The row with most evidence of those that ε excludes, or None: one that is not believed and `differs` from the
        likeliest one, though it explains the pairs better, by more than chance (`certainty`) and than honest people who
        are not linear (`nonlinearity`). Not under jit.
        """
        config = config or RobustFit()
        belief, differs, ahead = np.asarray(self.belief), np.asarray(self.differs), self.ahead()
        # Those that even the largest ε excludes are no news.
        known = np.asarray(self.needed) <= config.ceiling + 2.0 * config.habit
        excluded = (belief < config.plausible) & (differs > config.plausible) & known & np.isfinite(ahead)
        ahead = np.where(excluded, ahead, -np.inf)
        other = int(np.argmax(ahead))
        enough = max(config.certainty, config.nonlinearity * self.weights.shape[-1])
        return other if ahead[other] > enough else None

    def deciding(self, most: int = 20) -> Int[np.ndarray, " M"]:
        """The pairs that only one of the likeliest and the contending reward leaves honest, those on which they differ
        most first; none where no other contends. Not under jit.
        """
        other = self.contending()
        if other is None:
            return np.zeros(0, int)
        apart = np.abs(np.asarray(self.weights[self.likeliest] - self.weights[other]))
        order = highest_first(apart)
        return order[apart[order] > 0.5][:most]
