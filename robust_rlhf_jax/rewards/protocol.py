"""Reward estimators: how each is called, what it returns, and what its entry in the registry says."""

from typing import NamedTuple, Protocol

import equinox as eqx
import jax
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.kernels.linalg import matmul

from .alternative import Alternative
from .reward_fit import RewardFit


class RewardEstimate(eqx.Module):
    """`theta` [k]; `weights` [n] in [0, 1]: what each pair counted in the last fit; `suspicion` [n]: higher is
    likelier to be corrupt; `status`.
    """

    theta: Float[Array, " k"]
    weights: Float[Array, " n"]
    suspicion: Float[Array, " n"]
    status: Int[Array, ""]


class RewardEstimator(Protocol):
    """(x [n, k], labels [n] ±1, ε, radius of the ball that θ lies in) → `RewardEstimate`. Jit- and vmap-able."""

    def __call__(
        self,
        x: Float[Array, "n k"],
        labels: Float[Array, " n"],
        epsilon: Float[Array, ""],
        *,
        radius: float | Float[Array, ""],
    ) -> RewardEstimate: ...


def surprise(theta: Float[Array, " k"], x: Float[Array, "n k"], labels: Float[Array, " n"]):
    """−log P_θ(o_n | x_n) [n], in nats: the suspicion of an estimator that looks at labels alone."""
    return -jax.nn.log_sigmoid(labels * matmul(x, theta))


class EvidenceEstimator(Protocol):
    """The fit of an estimator that finds the share of corrupt pairs itself; to `compare`, another explanation, too."""

    def __call__(
        self,
        x: Float[Array, "n k"],
        labels: Float[Array, " n"],
        epsilon: Float[Array, ""],
        groups: Int[Array, " n"] | None = None,
        compare: bool = False,
        comparisons: Int[Array, " n"] | None = None,
    ) -> tuple[RewardFit, Alternative | None]: ...


class Entry(NamedTuple):
    """An estimator under its name.

    `label`, `colour`: in figures and tables, None for a colour that nobody has; `line`: what it is, in a few words;
    `ours`: of this project or its paper; `robust`: false for the fit that the others are compared with;
    `uses_epsilon`: whether ε plays a part in θ; `evidence`: None, or for an estimator that does without ε what an audit
    and `flag` ask in place of `estimate`.
    The tests hold a rival to the rest: `plain_at_zero`: at ε = 0 it is maximum likelihood; `by_surprise`: suspicion is
    the `surprise` of each label; `period`: rows are told apart by their place modulo this, 1 where they are not;
    `rotates`: rotated features give the rotated θ, which a penalty on single coordinates does not.
    """

    estimate: RewardEstimator
    label: str
    colour: str | None
    line: str
    ours: bool = False
    robust: bool = True
    uses_epsilon: bool = True
    evidence: EvidenceEstimator | None = None
    plain_at_zero: bool = True
    by_surprise: bool = False
    period: int = 1
    rotates: bool = True

    @property
    def rival(self) -> bool:
        """Other people's, and robust: `robust_rlhf_jax.rivals` plans with it."""
        return self.robust and not self.ours
