"""`best_of_n`: from preferences to the choice among given candidates, careful where the preferences may be lies."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax.checks import check_epsilon, is_traced
from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.preferences import Labelled, PreferenceData, as_labelled
from robust_rlhf_jax.rewards import RewardFit

from .possible_rewards import PossibleRewards, lies_may_hide, possible_rewards
from .reward_and_share import reward_and_share
from .safe_plan import GAINED, UNCERTAIN


class Choice(NamedTuple):
    """For sets of n candidates, [..., n]: `probability` of each; its `promised` gain over the reference by θ̂, and the
    `guaranteed` one, under any reward that the preferences leave possible; for sets, [...]: `index` of the likeliest,
    and whether the choice is `pessimistic`. `reward`: the fit behind it.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import load_rail_choices
    >>> from robust_rlhf_jax.algorithms import best_of_n
    >>> choice = best_of_n(load_rail_choices(), jax.random.normal(jax.random.key(0), (5, 8, 4)))
    >>> choice.index.shape, choice.probability.shape
    ((5,), (5, 8))
    """

    index: Int[Array, "*b"]
    probability: Float[Array, "*b n"]
    promised: Float[Array, "*b n"]
    guaranteed: Float[Array, "*b n"]
    pessimistic: Bool[Array, "*b"]
    reward: RewardFit


def best_of_n(
    data: Pairs | PreferenceData,
    candidates: Float[ArrayLike, "*b n k"],
    epsilon: float | Float[Array, ""] | None = None,
    *,
    reference: Float[ArrayLike, "*b n"] | None = None,
    temperature: float | Float[Array, ""] = 0.0,
) -> Choice:
    """The best of n candidates by preferences of which some may be corrupt.

    With ψ_i = φ_i − E_ref[φ] what candidate i has more than the reference, Θ the rewards that the preferences leave
    possible (as in `robust_policy`) and θ̂ the estimate, a set's scores are the promised gains θ̂ᵀψ_i; or, where the
    candidate of the best worst case is guaranteed clearly more than the one that promises most, the guaranteed
    gains min over Θ of θᵀψ_i. The choice maximises E_π[score] − η·KL(π ‖ π_ref): π_i ∝ π_ref,i·exp(score_i/η), at η = 0
    the best alone. On honest, sufficient preferences it is best-of-n.

    **Arguments:**

    - `data`: preferences between options with k features.
    - `candidates` [..., n, k]: sets of n options in the same features, a set for each prompt.
    - `epsilon`: the largest share of corrupt pairs, in [0, ½). None: decided from the evidence.
    - `reference` [..., n]: log-probabilities, up to a constant, that the model gives to the candidates. None: all
      alike, as for samples of the model, whose frequency says the rest.
    - `temperature`: η ≥ 0, in units of the reward (log-odds of preference).

    **Returns:** `Choice`.

    **Raises:** ValueError for malformed data or candidates, a reference of another shape, a set without any likely
    candidate, ε outside [0, ½), or η < 0.

    **Source:** KL-regularised choice: Gibbs' variational principle; the worst case over an ellipsoid after Zhu, Jordan
    & Jiao 2023; over-optimisation of best-of-n: Huang et al. 2025, *Is best-of-N the best of them?*.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import fit_reward, load_rail_choices
    >>> from robust_rlhf_jax.algorithms import best_of_n
    >>> rail, journeys = load_rail_choices(), jax.random.normal(jax.random.key(0), (50, 8, 4))
    >>> choice = best_of_n(rail, journeys)
    >>> greedy = fit_reward(rail).reward(journeys).argmax(axis=-1)
    >>> bool((choice.index == greedy).mean() >= 0.9)
    True
    """
    seen = as_labelled(data)
    sets, weights = _checked(candidates, reference, seen.x.shape[-1])
    if epsilon is not None:
        check_epsilon(epsilon)
    if not is_traced(temperature) and not float(temperature) >= 0:
        raise ValueError(f"temperature={temperature} must not be negative.")
    return _run(
        seen,
        sets.astype(seen.x.dtype),
        None if epsilon is None else jnp.asarray(epsilon, sets.dtype),
        weights,
        temperature,
    )


def _checked(candidates, reference, k: int) -> tuple[Array, Array]:
    """(candidates as floats, log-weights of the same sets)."""
    sets = jnp.asarray(candidates)
    if sets.ndim < 2 or sets.shape[-1] != k or 0 in sets.shape:
        raise ValueError(
            f"candidates has shape {sets.shape}: give [..., n, {k}], sets of n options with the {k} features of "
            "the data."
        )
    sets = sets.astype(jnp.result_type(sets, jnp.float32))
    if not is_traced(sets) and not bool(jnp.all(jnp.isfinite(sets))):
        raise ValueError("candidates holds NaN or infinite entries: give finite features.")
    weights = (
        jnp.zeros(sets.shape[:-1], sets.dtype) if reference is None else jnp.asarray(reference, sets.dtype)
    )
    if weights.shape != sets.shape[:-1]:
        raise ValueError(
            f"reference has shape {weights.shape}: give {sets.shape[:-1]}, one for each candidate."
        )
    if not is_traced(weights) and not bool(jnp.all(jnp.isfinite(jnp.max(weights, axis=-1)))):
        raise ValueError(
            "reference gives some set no likely candidate, or holds NaN: give log-probabilities."
        )
    return sets, weights


@eqx.filter_jit
def _run(seen: Labelled, sets, epsilon, weights, temperature) -> Choice:
    gone = jnp.mean(seen.off, dtype=sets.dtype)
    found, remaining = reward_and_share(seen, epsilon, gone)
    hiding = lies_may_hide(found, remaining, gone)
    possible = possible_rewards(seen.believed_x, found, remaining, hiding)
    flat = sets.reshape(-1, *sets.shape[-2:]), weights.reshape(-1, weights.shape[-1])
    choose = jax.vmap(
        lambda phi, log_ref: _of_one_set(phi, log_ref, possible, found.theta, hiding, temperature)
    )
    chosen = choose(*flat)
    unflat = jax.tree.map(lambda leaf: leaf.reshape(*sets.shape[:-2], *leaf.shape[1:]), chosen)
    index, probability, promised, guaranteed, pessimistic = unflat
    return Choice(index, probability, promised, guaranteed, pessimistic, found)


def _of_one_set(
    phi: Float[Array, "n k"],
    log_ref: Float[Array, " n"],
    possible: PossibleRewards,
    theta: Float[Array, " k"],
    hiding: Bool[Array, ""],
    temperature: float | Float[Array, ""],
):
    """(index, probability, promised, guaranteed, pessimistic) of one set; none of no likelihood is chosen."""
    likely = jnp.isfinite(log_ref)
    ahead = phi - matmul(jax.nn.softmax(log_ref), phi)
    promised, guaranteed = matmul(ahead, theta), jax.vmap(possible.guaranteed)(ahead)
    first, careful = (jnp.argmax(jnp.where(likely, gain, -jnp.inf)) for gain in (promised, guaranteed))
    known, promise = jax.vmap(possible.promised)(ahead)[first], jnp.maximum(promised[first], 0.0)
    unsure = known - guaranteed[first] > jnp.where(hiding, 0.0, UNCERTAIN) * promise
    more = guaranteed[careful] > guaranteed[first] + jnp.where(hiding, 0.0, GAINED) * promise
    score = jnp.where(unsure & more, guaranteed, promised)
    best = jnp.argmax(jnp.where(likely, score, -jnp.inf))
    warm = jnp.maximum(temperature, jnp.finfo(phi.dtype).tiny)
    gibbs = jax.nn.softmax(log_ref + (score - score[best]) / warm)
    only = jax.nn.one_hot(best, len(phi), dtype=phi.dtype)
    probability = jnp.where(temperature > 0, gibbs, only)
    return jnp.argmax(probability), probability, promised, guaranteed, unsure & more
