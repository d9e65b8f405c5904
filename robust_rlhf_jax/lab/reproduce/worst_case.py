"""What is left under the attack that hurts most."""

from typing import Any, NamedTuple

import numpy as np

# Attacks whose mean returns differ by less than this are equally harmful: tables show three digits.
SAME_HARM = 5e-4
# In place of an attack's name where several were tried and none hurt more than the others.
NO_CULPRIT = ""


class WorstCase(NamedTuple):
    """`returns` [S]: per seed, the lowest normalised return over the attacks; `attack`: the one that leaves least on
    average over the seeds, `NO_CULPRIT` where all leave the same.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.lab.reproduce import WorstCase
    >>> WorstCase(np.array([0.2, 0.3, 0.6]), "mimicry").text
    '0.300 (0.25–0.45)'
    """

    returns: np.ndarray
    attack: str

    @property
    def quartiles(self) -> tuple[float, float, float]:
        """Lower quartile, median and upper quartile over seeds."""
        return tuple(np.quantile(self.returns, (0.25, 0.5, 0.75)).tolist())

    @property
    def text(self) -> str:
        """Median and quartiles, as tables show them."""
        low, median, high = self.quartiles
        return f"{median:.3f} ({low:.2f}–{high:.2f})"

    @property
    def spread(self) -> float:
        """Interquartile range over seeds."""
        low, _, high = self.quartiles
        return high - low


def worst_cases(
    rows: list[dict[str, Any]], without: tuple[str, ...] = ()
) -> dict[tuple[str, str, float], WorstCase]:
    """(family, algorithm, ε) → `WorstCase`.

    The normalised return is 1 − normalised gap: 1 for optimal play, 0 for the worst. The worst attack is chosen for
    each seed by itself: the adversary sees the data. `without`: attacks that do not count. A gap that is NaN
    counts as 1.

    **Example:**

    >>> from robust_rlhf_jax.lab.reproduce import worst_cases
    >>> cell = {"family": "chain", "algorithm": "standard", "epsilon": 0.1, "seed": 0}
    >>> rows = [{**cell, "attack": a, "normalised_gap": gap} for a, gap in (("flip_random", 0.1), ("mimicry", 0.7))]
    >>> worst_cases(rows)["chain", "standard", 0.1].attack
    'mimicry'
    """
    groups: dict[tuple[str, str, float], dict[int, list[tuple[float, str]]]] = {}
    for row in rows:
        if row["attack"] in without:
            continue
        key = (row["family"], row["algorithm"], row["epsilon"])
        left = 1.0 - np.nan_to_num(row["normalised_gap"], nan=1.0)
        groups.setdefault(key, {}).setdefault(row["seed"], []).append((float(left), row["attack"]))
    return {key: WorstCase(_lowest(seeds), _culprit(seeds)) for key, seeds in groups.items()}


def _lowest(seeds: dict[int, list[tuple[float, str]]]) -> np.ndarray:
    return np.sort([min(left for left, _ in found) for found in seeds.values()])


def _culprit(seeds: dict[int, list[tuple[float, str]]]) -> str:
    """The attack that harms most over all seeds: within one seed attacks often tie, and the alphabet would decide."""
    returns: dict[str, list[float]] = {}
    for found in seeds.values():
        for left, attack in found:
            returns.setdefault(attack, []).append(left)
    means = {attack: float(np.mean(left)) for attack, left in returns.items()}
    tied = len(means) > 1 and max(means.values()) - min(means.values()) < SAME_HARM
    return NO_CULPRIT if tied else min(means, key=means.__getitem__)


def area(epsilons: np.ndarray, returns: np.ndarray) -> float:
    """Mean of `returns` over ε by the trapezoidal rule: 1 if nothing is ever lost.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.lab.reproduce import area
    >>> round(area(np.array([0.0, 0.1, 0.2]), np.array([1.0, 0.8, 0.4])), 3)
    0.75
    """
    return float(np.trapezoid(returns, epsilons) / (epsilons[-1] - epsilons[0]))
