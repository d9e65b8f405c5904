"""The table of planners, algorithms and rewards with a plain planner: what sweeps run and figures name and draw."""

import colorsys
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax.algorithms import (
    ConditionNumberConfig,
    DescentConfig,
    PessimisticMLEConfig,
    Solution,
    UniformCoverageConfig,
    condition_number,
    first_order,
    pessimistic_mle,
    robust_policy,
    standard,
    uniform_coverage,
)
from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.lab.rivals import planner
from robust_rlhf_jax.preferences import PreferenceData
from robust_rlhf_jax.rewards.registry import ESTIMATORS

__all__ = ["METHODS", "OURS", "Method"]


class Method(NamedTuple):
    """`run(key, data, epsilon)`; `label`, `colour`: in figures and tables; `ours`: of this project or its paper.

    **Example:**

    >>> from robust_rlhf_jax.lab.methods import METHODS
    >>> METHODS["sever"].label, METHODS["sever"].ours, METHODS["robust_policy"].ours
    ('Sever', False, True)
    """

    run: Callable[..., Solution]
    label: str
    colour: str
    ours: bool


AUTODIFF = ConditionNumberConfig(descent=DescentConfig(gradient="autodiff"))
REUSE = UniformCoverageConfig(reuse_data=True)
LINEAR = PessimisticMLEConfig(penalty="linear")


def _told_nothing(
    key: PRNGKeyArray, data: Pairs | PreferenceData, epsilon: float | Float[Array, ""]
) -> Solution:
    """`robust_policy` without ε."""
    return robust_policy(key, data)


ALGORITHMS = {
    "standard": Method(standard, "plain RLHF", "#c1432e", False),
    "robust_policy": Method(robust_policy, "robust policy", "#0b3c5d", True),
    "robust_policy_unknown": Method(_told_nothing, "robust policy, ε unknown", "#6a8caf", True),
    "uniform_coverage": Method(uniform_coverage, "Algorithm 1", "#1f6f8b", True),
    "uniform_coverage_reuse": Method(
        partial(uniform_coverage, config=REUSE), "Algorithm 1, no split", "#3fb3d4", True
    ),
    "condition_number": Method(condition_number, "Algorithm 3", "#5a8f3d", True),
    "condition_number_autodiff": Method(
        partial(condition_number, config=AUTODIFF), "Algorithm 3, autodiff", "#8a5fb0", True
    ),
    "first_order": Method(first_order, "Algorithm 4", "#2f3e75", True),
    "pessimistic_mle": Method(pessimistic_mle, "pessimistic MLE", "#d98e04", False),
    "pessimistic_mle_linear": Method(
        partial(pessimistic_mle, config=LINEAR), "pessimistic MLE, linear", "#a8795a", False
    ),
}


def methods() -> dict[str, Method]:
    """The algorithms, then every entry of the table of reward estimators with a plain planner behind it."""
    taken = [method.colour for method in ALGORITHMS.values()]
    taken += [entry.colour for entry in ESTIMATORS.values() if entry.colour]
    rewards = {}
    for name, entry in ESTIMATORS.items():
        colour = entry.colour or free_colour(taken)
        taken.append(colour)
        rewards[name] = Method(planner(name), entry.label, colour, entry.ours)
    return ALGORITHMS | rewards


def free_colour(taken: Sequence[str]) -> str:
    """The colour (#rrggbb), among 36 hues, that is farthest from all that are taken."""
    candidates = [np.round(255 * np.array(colorsys.hls_to_rgb(k / 36, 0.45, 0.8))) for k in range(36)]
    others = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in taken])
    far = max(candidates, key=lambda rgb: np.linalg.norm(others - rgb, axis=1).min())
    return "#" + "".join(f"{int(part):02x}" for part in far)


METHODS = methods()
OURS = tuple(name for name, method in METHODS.items() if method.ours)
