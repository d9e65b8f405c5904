"""How much of a preference file is corrupt: whether there is evidence, how much, and how much could hide.

The share itself comes with every fit: `interval.py` bounds it, `config.py` has the ceiling for an unknown ε.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.checks import is_traced
from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.preferences import PreferenceData
from robust_rlhf_jax.sources import PairSource

from .front_door import fit_reward
from .streamed import Streaming


class EpsilonEstimate(eqx.Module):
    """`lower` ≤ `estimate` ≤ `upper`: shares of corrupt pairs that are certain, likely and possible; `evidence`: that
    something contradicts the rest; without it `estimate` is 0. `separable`: that a reward explains every label, or that
    they ask for a longer θ than the prior allows.

    **Example:**

    >>> from robust_rlhf_jax import estimate_epsilon, load_rail_choices
    >>> found = estimate_epsilon(load_rail_choices())
    >>> [round(float(share), 1) for share in (found.lower, found.estimate, found.upper)], bool(found.evidence)
    ([0.0, 0.0, 0.2], False)
    """

    estimate: Float[Array, ""]
    lower: Float[Array, ""]
    upper: Float[Array, ""]
    evidence: Bool[Array, ""]
    separable: Bool[Array, ""] | bool = False

    def __repr__(self) -> str:
        """The numbers and the message, outside of jit and vmap; else the shapes."""
        if is_traced(self.estimate) or self.estimate.ndim:
            return super().__repr__()
        shares = ", ".join(
            f"{name}={float(getattr(self, name)):.3f}" for name in ("estimate", "lower", "upper")
        )
        return f"EpsilonEstimate({shares})\n{self.message}"

    @property
    def message(self) -> str:
        """One sentence. Not under jit."""
        if is_traced(self.estimate):
            raise ValueError("message needs the estimate's values: read it outside of jit and vmap.")
        share, low, high = (100 * float(v) for v in (self.estimate, self.lower, self.upper))
        if not bool(self.evidence) and bool(self.separable):
            return (
                f"No evidence of corruption; up to {high:.1f} % of the pairs could be corrupt without a trace, and "
                "more if they follow the reward that was found."
            )
        if not bool(self.evidence):
            return f"No evidence of corruption; up to {high:.1f} % of the pairs could be corrupt without a trace."
        return f"About {share:.1f} % of the pairs are corrupt; between {low:.1f} and {high:.1f} % may be."


def estimate_epsilon(
    data: Pairs | PreferenceData | PairSource,
    *,
    groups: Int[np.ndarray, " N"] | None = None,
    streaming: Streaming | None = None,
) -> EpsilonEstimate:
    """The share of corrupt pairs that `fit_reward` finds without ε, with an interval.

    - `estimate`: the share of pairs that the rest contradicts, and at least `lower`.
    - `lower`: what every explanation of the data needs, less what honest people's choices seem to need.
    - `upper`: without evidence, the share that may be hidden: pairs that a plausible explanation would leave out, and
      labels flipped at random, which act to first order as a higher temperature and show only in pairs with large
      margins. If a reward predicts every label, only pairs beyond twice the number of features exclude flips; without
      such pairs `upper` is a fifth of the pairs (`CEILING`). With evidence it is a fifth, too, since there may be more
      corrupted pairs than those found.

    The interval held the truth in more than nine of ten cases on three sets of real choices, clean and attacked at ε of
    .05, .1 and .2 (docs/unknown_epsilon.md). It presumes a linear reward and that no more than a fifth of the pairs is
    corrupt: no interval covers corrupt pairs that follow another reward consistently, or decide the fit.

    **Arguments:** `groups` [N]: who labelled each pair, or None; `streaming`: how a `PairSource` is read, as of
    `fit_reward`.

    **Raises:** as `fit_reward`.

    **Example:**

    >>> from robust_rlhf_jax import estimate_epsilon, load_rail_choices, preferences
    >>> estimate_epsilon(load_rail_choices(), groups=preferences.rail_people()).message
    'No evidence of corruption; up to 17.9 % of the pairs could be corrupt without a trace.'
    """
    model = fit_reward(data, groups=groups, streaming=streaming)
    lower, upper = model.interval
    estimate = jnp.maximum(model.epsilon, lower)
    separable = model.status == Status.SEPARABLE
    return EpsilonEstimate(estimate, lower, jnp.maximum(upper, estimate), estimate > 0, separable)
