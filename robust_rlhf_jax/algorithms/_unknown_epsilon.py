"""Any algorithm, for users who do not know ε."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Int, PRNGKeyArray

from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.preferences import PreferenceData, with_table
from robust_rlhf_jax.rewards import estimate_epsilon

from ._uniform_coverage import uniform_coverage
from .solution import Solution

# ε is a ceiling: a little more than the estimate, and no more than filters can bear on clean data.
MARGIN, MOST = 1.25, 0.25


def unknown_epsilon(
    key: PRNGKeyArray,
    data: Pairs | PreferenceData,
    *,
    algorithm: Callable[..., Solution] = uniform_coverage,
    groups: Int[np.ndarray, " N"] | None = None,
    **options: Any,
) -> Solution:
    """`algorithm` with a quarter more than the ε of `estimate_epsilon`: 0 where there is no evidence of corruption.

    Costs one reward fit. What not knowing ε costs in the gap: docs/unknown_epsilon.md.

    **Arguments:** `algorithm` (key, data, ε, **options) → `Solution`; `groups` [N]: who labelled each pair, or None.

    **Returns:** the algorithm's `Solution` with `epsilon`, the value that it got, among the diagnostics. It is that of
    the reward: an ε of transitions alone is not seen.

    **Raises:** ValueError for malformed or non-finite data, and all that the algorithm refuses.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import algorithms, attacks, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> clean = sample_preferences(jax.random.key(0), mdp, 200)
    >>> bad = attacks.push_features(jax.random.key(1), clean, 0.1, mdp)
    >>> found = algorithms.unknown_epsilon(jax.random.key(2), bad, algorithm=algorithms.standard)
    >>> round(float(found.diagnostics["epsilon"]), 3)
    0.125
    """
    data = with_table(data)
    epsilon = jnp.minimum(MARGIN * estimate_epsilon(data, groups=groups).estimate, MOST)
    solution = algorithm(key, data, epsilon, **options)
    return dataclasses.replace(solution, diagnostics={**solution.diagnostics, "epsilon": epsilon})
