"""Adversaries on labelled differences, for data that have no decision problem behind them; `PAIR_ATTACKS` by name.

Each file lists its functions in `ATTACKS`, and those of them that replace whole raters in `BY_RATER`, too.
"""

from collections.abc import Callable

from robust_rlhf_jax.collected import by_name, modules_with

from .base import AttackedPairs

__all__ = ["PAIR_ATTACKS", "AttackedPairs", "by_raters"]

_MODULES = modules_with(__name__, "ATTACKS")
PAIR_ATTACKS: dict[str, Callable[..., AttackedPairs]] = by_name(
    (attack.__name__, attack) for module in _MODULES for attack in module.ATTACKS
)
_BY_RATER = {attack.__name__ for module in _MODULES for attack in getattr(module, "BY_RATER", ())}


def by_raters(name: str) -> bool:
    """Whether this attack replaces raters, so that it needs to know who labelled each pair.

    **Example:**

    >>> from robust_rlhf_jax.lab.pair_attacks import by_raters
    >>> by_raters("contrary_raters"), by_raters("near")
    (True, False)
    """
    return name in _BY_RATER
