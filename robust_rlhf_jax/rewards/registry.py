"""The table of ways to estimate a reward from labelled differences, all called alike.

Audits, `flag`, sweeps, benchmarks and attacks take any name from it: an estimator that is added here is offered there.
Other people's add themselves: each module in `rivals/` has its `ENTRIES`.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.collected import by_name, in_order, modules_of
from robust_rlhf_jax.likelihood.trimmed import plain_mle, trimmed_mle
from robust_rlhf_jax.rewards import rivals

from .alternative import Alternative
from .filter_and_trim import robust_reward
from .fit import fit_differences, fit_with_alternative
from .planted_rows import excess_surprise, removal_is_telling
from .protocol import Entry, RewardEstimate, RewardEstimator, surprise
from .reward_fit import RewardFit
from .reweighted import filtered_then_trimmed, low_leverage, row_normalised, trimmed_from_row_normalised

# Measured (benchmarks/detection.py): with the removed always first, honest far-out pairs bury the lies among labels;
# with surprise alone, planted pairs that θ̂ finds unsurprising are missed.
EMPHASIS = 5.0


def robust(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    *,
    radius: float | Float[Array, ""],
) -> RewardEstimate:
    """`fit_differences`, which `fit_reward` is made of; its prior bounds θ, and `radius` is not used."""
    found = fit_differences(x, labels, epsilon)
    return RewardEstimate(found.theta, found.weights, found.suspicion, found.status)


def maximum_likelihood(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    *,
    radius: float | Float[Array, ""],
) -> RewardEstimate:
    """Plain maximum likelihood on the ball; ε is not used."""
    fit = plain_mle(x, labels, radius=radius)
    return RewardEstimate(fit.theta, fit.weights, surprise(fit.theta, x, labels), fit.status)


def trimmed(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    *,
    radius: float | Float[Array, ""],
) -> RewardEstimate:
    """`trimmed_mle` alone (paper: Algorithm 2)."""
    fit = trimmed_mle(x, labels, epsilon, radius=radius)
    return RewardEstimate(fit.theta, fit.weights, surprise(fit.theta, x, labels), fit.status)


def filtered(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    *,
    radius: float | Float[Array, ""],
) -> RewardEstimate:
    """`robust_reward`: the filter and trimming of Algorithm 1, all rows used for every stage.

    Suspicion is the label's surprise; a pair that the filter removed counts `EMPHASIS` times as much where the
    removed pairs' labels are told apart from the rest's (`removal_is_telling`).
    """
    found = robust_reward(x, x, labels, epsilon, radius=radius)
    theta = found.fit.theta
    telling = removal_is_telling(excess_surprise(theta, x, labels), found.survivors)
    removed = jnp.where(telling, 1.0 - found.survivors, 0.0)
    suspicion = surprise(theta, x, labels) * (1.0 + (EMPHASIS - 1.0) * removed)
    return RewardEstimate(theta, found.fit.weights, suspicion, found.status)


def evidence(
    x: Float[Array, "n k"],
    labels: Float[Array, " n"],
    epsilon: Float[Array, ""],
    groups: Int[Array, " n"] | None = None,
    compare: bool = False,
    comparisons: Int[Array, " n"] | None = None,
) -> tuple[RewardFit, Alternative | None]:
    """All that `fit_differences` finds, and the pairs that another explanation suspects if asked to `compare`."""
    if compare:
        return fit_with_alternative(x, labels, epsilon, groups, comparisons=comparisons)
    return fit_differences(x, labels, epsilon, groups, comparisons=comparisons), None


def entries_of(modules: Iterable[ModuleType]) -> list[tuple[str, Entry]]:
    """The `ENTRIES` of modules that have some, each with the name of its function."""
    found = [entry for module in modules for entry in getattr(module, "ENTRIES", ())]
    return [(entry.estimate.__name__, entry) for entry in found]


DEFAULT = "fit_reward"
OWN: dict[str, Entry] = {
    DEFAULT: Entry(
        robust,
        "fit_reward, plain planner",
        "#14507a",
        "the explanations of the labels, weighed",
        ours=True,
        evidence=evidence,
    ),
    "maximum_likelihood": Entry(
        maximum_likelihood,
        "maximum likelihood",
        "#e06a52",
        "every label believed",
        robust=False,
        uses_epsilon=False,
        by_surprise=True,
    ),
    "trimmed": Entry(trimmed, "trimmed likelihood", "#7fb069", "Algorithm 2 alone", ours=True),
    "filtered": Entry(filtered, "filter and trim", "#2a9d8f", "Algorithm 1 on all pairs", ours=True),
    "filtered_then_trimmed": Entry(
        filtered_then_trimmed,
        "filter, trim, refit",
        "#52796f",
        "`filtered`, then one fit to the pairs that are likeliest under it",
        ours=True,
    ),
    "trimmed_from_row_normalised": Entry(
        trimmed_from_row_normalised,
        "trimmed, from equal rows",
        "#9a8c98",
        "Algorithm 2 from the row-normalised fit",
        ours=True,
    ),
    "row_normalised": Entry(
        row_normalised,
        "row-normalised",
        "#b08968",
        "rows weighted by 1/‖x‖ (Künsch, Stefanski & Carroll 1989); ε is not used",
        uses_epsilon=False,
        plain_at_zero=False,
        by_surprise=True,
    ),
    "low_leverage": Entry(
        low_leverage,
        "low leverage",
        "#f4a261",
        "the longest rows left out (Carroll & Pederson 1993)",
        by_surprise=True,
    ),
}
# The order of tables and help texts; a rival that is not here follows, by name.
FIRST = ("r3m", "cdpo", "rdpo", "sever", "redescending", "confident_learning")
ESTIMATORS: dict[str, Entry] = in_order(
    by_name([*OWN.items(), *entries_of(modules_of(rivals))]), (*OWN, *FIRST)
)


class _Functions(Mapping[str, RewardEstimator]):
    """The estimators that are registered now, by name."""

    def __getitem__(self, name: str) -> RewardEstimator:
        return ESTIMATORS[name].estimate

    def __iter__(self) -> Iterator[str]:
        return iter(ESTIMATORS)

    def __len__(self) -> int:
        return len(ESTIMATORS)


REWARD_ESTIMATORS: Mapping[str, RewardEstimator] = _Functions()


def needs_epsilon(name: str) -> bool:
    """Whether an audit cannot do without ε: every estimator that does not find the share of corrupt pairs itself."""
    return name not in ESTIMATORS or ESTIMATORS[name].evidence is None


def named(name: str, epsilon: Any) -> Entry:
    """The entry of this name.

    **Raises:** ValueError for an unknown name, or without ε (None) where it is needed.
    """
    if name not in ESTIMATORS:
        raise ValueError(
            f"estimator={name!r} is unknown: it is one of {', '.join(ESTIMATORS)}. Estimators that judge raters are "
            "run by robust-rlhf benchmark alone."
        )
    if epsilon is None and needs_epsilon(name):
        without = ", ".join(repr(other) for other in ESTIMATORS if not needs_epsilon(other))
        raise ValueError(f"estimator={name!r} needs epsilon: only {without} does without.")
    return ESTIMATORS[name]
