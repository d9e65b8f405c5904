"""Any algorithm, for users who do not know ε."""

import dataclasses
from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax.estimators.epsilon_choice import DEFAULT_GRID, choose_epsilon
from robust_rlhf_jax.preferences import PreferenceData, check_preferences

from .solution import Solution
from .uniform_coverage import uniform_coverage


def unknown_epsilon(
    key: PRNGKeyArray,
    data: PreferenceData,
    *,
    algorithm: Callable[..., Solution] = uniform_coverage,
    grid: Float[Array, " E"] = DEFAULT_GRID,  # pyright: ignore[reportArgumentType]
    radius: float | Float[Array, ""] | None = None,
    **options,
) -> Solution:
    """`algorithm` with the ε that `choose_epsilon` picks from `grid` on all pairs' differences (Lepski's rule; ours).

    Costs one robust reward fit per ε of the grid. What not knowing ε costs in the gap: `benchmarks/unknown_epsilon.py`.

    **Arguments:** `algorithm` (key, data, ε, **options) → `Solution`; `grid` rising, in [0, ½): its last value is the
    largest corruption that is provided for; `radius`: bound on ‖θ‖₂ of those fits, default √(Hp).

    **Returns:** the algorithm's `Solution` with `epsilon` (chosen) and `epsilon_index` (its place) among the
    diagnostics. It speaks of the reward: an ε of transitions alone is not seen.

    **Raises:** ValueError for a wrong grid, malformed or non-finite data, and all that the algorithm refuses.
    """
    check_preferences(data)
    bound = data.theta_dim**0.5 if radius is None else radius
    choice = choose_epsilon(data.differences(), data.labels, grid, radius=bound)
    solution = algorithm(key, data, choice.epsilon, **options)
    found = {"epsilon": choice.epsilon, "epsilon_index": choice.index.astype(jnp.int32)}
    return dataclasses.replace(solution, diagnostics={**solution.diagnostics, **found})
