"""Reward estimators that know who labelled each pair: how each is called, what it returns, and its entry by name."""

from typing import NamedTuple, Protocol

from jaxtyping import Array, Float, Int

from robust_rlhf_jax.rewards.protocol import RewardEstimate

# A rater of less reliability is called bad: nearer to a coin than to the crowd.
BAD_BELOW = 0.5


class RaterEstimate(RewardEstimate):
    """A `RewardEstimate` with the `reliability` [K] of each rater: 1 as the crowd, 0 a coin, below 0 the opposite; None
    of an estimator that does not judge raters.
    """

    reliability: Float[Array, " K"] | None


class RaterEstimator(Protocol):
    """(x [n, k], labels [n] ±1, ε, raters [n] numbers from 0 to K − 1, K, radius of the ball that θ lies in) →
    `RaterEstimate`. Jit- and vmap-able; K is static.
    """

    def __call__(
        self,
        x: Float[Array, "n k"],
        labels: Float[Array, " n"],
        epsilon: Float[Array, ""],
        raters: Int[Array, " n"],
        n_raters: int,
        *,
        radius: float | Float[Array, ""],
    ) -> RaterEstimate: ...


class RaterEntry(NamedTuple):
    """An estimator that knows the raters, under its name: `label` in tables, `line`: what it is, in a few words."""

    estimate: RaterEstimator
    label: str
    line: str
