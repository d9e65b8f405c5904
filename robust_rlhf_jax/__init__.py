"""Corruption-robust offline RLHF in JAX: from a corrupted preference file to a policy that survives it.

The main functions are `fit_reward` and `robust_policy`; the data that they take and the results that they give are
here, too. Everything else is in the namespaces below; those of the laboratory, `lab/`, are imported at their first use.
"""

import importlib
import typing

from . import algorithms, audit, io, likelihood, moments, oracles, raters, rewards
from ._iterate import Status
from .algorithms import Solution, robust_policy
from .io import Pairs
from .preferences import (
    PreferenceData,
    ask_table,
    changed_pairs,
    check_preferences,
    label_entropy,
    load,
    load_rail_choices,
    off_table,
    preferences_from_features,
    preferences_from_options,
    random_split,
    sample_preferences,
    sample_segments,
    save,
)
from .rewards import EpsilonEstimate, RewardModel, estimate_epsilon, fit_reward

if typing.TYPE_CHECKING:
    from .lab import attacks, diagnostics, rivals, worlds

__version__ = "0.1.0"

__all__ = [
    "EpsilonEstimate",
    "Pairs",
    "PreferenceData",
    "RewardModel",
    "Solution",
    "Status",
    "algorithms",
    "ask_table",
    "attacks",
    "audit",
    "changed_pairs",
    "check_preferences",
    "diagnostics",
    "estimate_epsilon",
    "fit_reward",
    "io",
    "label_entropy",
    "likelihood",
    "load",
    "load_rail_choices",
    "moments",
    "off_table",
    "oracles",
    "preferences_from_features",
    "preferences_from_options",
    "random_split",
    "raters",
    "rewards",
    "rivals",
    "robust_policy",
    "sample_preferences",
    "sample_segments",
    "save",
    "worlds",
]

_LABORATORY = ("attacks", "diagnostics", "rivals", "worlds")


def __getattr__(name: str):
    """`robust_rlhf_jax.attacks` is `robust_rlhf_jax.lab.attacks`, and so on."""
    if name in _LABORATORY:
        return importlib.import_module(f".lab.{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return [*globals(), *_LABORATORY]
