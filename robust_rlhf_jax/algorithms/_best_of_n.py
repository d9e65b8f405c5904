"""`best_of_n`: from preferences, of which some may be corrupt, to the choice among given candidates."""

import dataclasses
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int

from robust_rlhf_jax.checks import check_epsilon, is_traced
from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.io.frames import in_order
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.kernels.units import in_units, typical_powers
from robust_rlhf_jax.module import Module
from robust_rlhf_jax.preferences import Labelled, PreferenceData, as_labelled
from robust_rlhf_jax.rewards import RewardFit
from robust_rlhf_jax.rewards.front_door import known_names
from robust_rlhf_jax.terminal import counted, some_of

from .possible_rewards import PossibleRewards, lies_may_hide, possible_rewards
from .reward_and_share import reward_and_share
from .safe_plan import GAINED, UNCERTAIN


class Choice(NamedTuple):
    """What was chosen from sets of n candidates.

    `index` [...]: of the likeliest candidate; `probability` [..., n]; `promised` [..., n]: the gain over the reference
    by θ̂; `guaranteed` [..., n]: the least gain under any reward that the preferences leave possible; `pessimistic`
    [...]: whether the scores were the guaranteed gains.

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


class Reranker(Module):
    """The rewards that preferences leave possible, fitted once: `choose` takes any number of sets of candidates.

    `reward`: the fit; `possible`: the rewards that it leaves possible; `hiding`: whether corrupt pairs may be left
    among those that no explanation disputes; `feared`: whether any may be there at all; `names` of the features, by
    which the columns of a data frame are taken. Build it with `fit_reranker`.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import load_rail_choices
    >>> from robust_rlhf_jax.algorithms import fit_reranker
    >>> reranker = fit_reranker(load_rail_choices())
    >>> reranker.choose(jax.random.normal(jax.random.key(0), (8, 4))).index.shape
    ()
    """

    reward: RewardFit
    possible: PossibleRewards
    hiding: Bool[Array, ""]
    feared: Bool[Array, ""]
    names: tuple[str, ...] = eqx.field(static=True, default=())

    def __repr__(self) -> str:
        """The number of features of its rewards."""
        return f"Reranker(rewards of {counted(self.reward.theta.shape[-1], 'feature')}{some_of(self.names)})"

    def choose(
        self,
        candidates: Float[ArrayLike, "*b n k"],
        *,
        reference: Float[ArrayLike, "*b n"] | None = None,
        temperature: float | Float[Array, ""] = 0.0,
    ) -> Choice:
        """The choice of `best_of_n` from these candidates, with its arguments and errors."""
        candidates = in_order(candidates, self.names, len(self.reward.theta))
        return _choose(self, *_checked(candidates, reference, temperature, self.reward.theta))


def fit_reranker(data: Pairs | PreferenceData, epsilon: float | Float[Array, ""] | None = None) -> Reranker:
    """What `best_of_n` learns from preferences, to choose from many sets of candidates.

    **Raises:** ValueError for malformed data, ties, or ε outside [0, ½).

    **Example:**

    >>> from robust_rlhf_jax import load_rail_choices
    >>> from robust_rlhf_jax.algorithms import fit_reranker
    >>> reranker = fit_reranker(load_rail_choices(), 0.1)
    >>> reranker.choose([[0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]]).index.item()  # the dearer journey is not taken
    0
    """
    return dataclasses.replace(_fit(*_seen(data, epsilon)), names=known_names(data))


def best_of_n(
    data: Pairs | PreferenceData,
    candidates: Float[ArrayLike, "*b n k"],
    epsilon: float | Float[Array, ""] | None = None,
    *,
    reference: Float[ArrayLike, "*b n"] | None = None,
    temperature: float | Float[Array, ""] = 0.0,
) -> Choice:
    """The best of n candidates by preferences of which some may be corrupt.

    Candidate i has ψ_i = φ_i − E_ref[φ] more than the reference; θ̂ is the estimate, and Θ holds the rewards that the
    preferences leave possible, as in `robust_policy`. The scores of a set are the promised gains θ̂ᵀψ_i. They are the
    guaranteed gains min over Θ of θᵀψ_i where the candidate that promises most is unsure and another one is guaranteed
    clearly more: never at ε = 0, nor without ε where there is no evidence of corruption. The choice maximises
    E_π[score] − η·KL(π ‖ π_ref): π_i ∝ π_ref,i·exp(score_i/η), at η = 0 the best candidate alone.

    **Arguments:**

    - `data`: preferences between options with k features.
    - `candidates` [..., n, k]: sets of n options in the same features, for example a set for each prompt; those of
      NumPy are subtracted from each other in their own precision. A data frame is one set, its columns in any order.
    - `epsilon`: the largest share of corrupt pairs, in [0, ½). None: decided from the evidence.
    - `reference` [..., n]: log π_ref of the candidates, up to a constant. None: all alike, which is right for
      independent samples of the model.
    - `temperature`: η ≥ 0, in units of the reward (log-odds of preference).

    **Returns:** `Choice`.

    **Raises:** ValueError for malformed data or candidates, ties, a reference of another shape, a set in which no
    candidate is likely, ε outside [0, ½), or η < 0.

    **Source:** KL-regularised choice: Gibbs' variational principle; the worst case over an ellipsoid: Zhu, Jordan and
    Jiao 2023; over-optimisation by best-of-n: Huang et al. 2025, *Is Best-of-N the Best of Them?*.

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
    seen, level = _seen(data, epsilon)
    # What is wrong with the candidates must not be said after the fit.
    candidates = in_order(candidates, known_names(data), seen.x.shape[1])
    given = _checked(candidates, reference, temperature, seen.x[0])
    return _choose(_fit(seen, level), *given)


def _seen(data, epsilon) -> tuple[Labelled, Float[Array, ""] | None]:
    if epsilon is not None:
        check_epsilon(epsilon)
    seen = as_labelled(data)
    return seen, None if epsilon is None else jnp.asarray(epsilon, seen.x.dtype)


def _checked(candidates, reference, temperature, like: Float[Array, " k"]) -> tuple[Array, Array, Array]:
    """(candidates, log-weights of the same sets, temperature) in the type of `like`."""
    sets, k = _unrounded(candidates), len(like)
    if 0 in sets.shape:
        raise ValueError(f"candidates has shape {sets.shape}, and so no set of options: give at least one.")
    if sets.ndim < 2 or sets.shape[-1] != k:
        raise ValueError(
            f"candidates has shape {sets.shape}: give [..., n, {k}], sets of n options with the {k} features of "
            "the data."
        )
    log_ref = jnp.zeros(sets.shape[:-1]) if reference is None else _less_largest(reference)
    if log_ref.shape != sets.shape[:-1]:
        raise ValueError(
            f"reference has shape {log_ref.shape}: give {sets.shape[:-1]}, a log-probability for each candidate."
        )
    if not is_traced(log_ref) and not bool(jnp.all(jnp.isfinite(jnp.max(log_ref, axis=-1)))):
        raise ValueError(
            "reference holds NaN, or a set in which no candidate is likely: give log-probabilities."
        )
    sets = _near_each_other(sets, log_ref, like.dtype)
    if not is_traced(sets) and not bool(jnp.all(jnp.isfinite(sets))):
        raise ValueError("candidates holds NaN or infinite entries: give finite features.")
    if np.ndim(temperature):
        raise ValueError(f"temperature has shape {np.shape(temperature)}: give one number for all sets.")
    if not is_traced(temperature) and not float(temperature) >= 0:
        raise ValueError(f"temperature={temperature} must be a number of at least 0.")
    return sets, jnp.asarray(log_ref, like.dtype), jnp.asarray(temperature, like.dtype)


def _unrounded(candidates: Float[ArrayLike, "*b n k"]) -> Array | np.ndarray:
    """Candidates as an array that holds them as they are: JAX would make float32 of the host's numbers."""
    if isinstance(candidates, jax.Array):
        return candidates
    traced = any(map(is_traced, jax.tree.leaves(candidates)))
    try:
        return jnp.asarray(candidates) if traced else np.asarray(candidates)
    except ValueError:
        raise ValueError(
            "candidates are sets of different sizes: fill the smaller ones up, and give reference=-inf there."
        ) from None


def _less_largest(reference: Float[ArrayLike, "*b n"]) -> Array | np.ndarray:
    """Log-probabilities less the largest of their set, subtracted in their own precision: they are known up to a
    constant, which would round them away.
    """
    if isinstance(reference, jax.Array) or any(map(is_traced, jax.tree.leaves(reference))):
        return jnp.asarray(reference)
    own = np.asarray(reference, np.float64)
    largest = own.max(axis=-1, keepdims=True) if own.ndim and own.size else 0.0
    return own - np.where(np.isfinite(largest), largest, 0.0)


def _near_each_other(
    sets: Array | np.ndarray, log_ref: Array | np.ndarray, dtype: np.dtype
) -> Float[Array, "*b n k"]:
    """Candidates in `dtype`; where it would round them, less the likeliest of their set, subtracted in their own
    precision: only differences count, and an offset that all share, as of timestamps, would round them away.
    """
    if is_traced(sets) or np.can_cast(sets.dtype, dtype):
        return jnp.asarray(sets, dtype)
    own = np.asarray(sets) if sets.dtype.kind == "f" else np.asarray(sets).astype(np.float64)
    likeliest = np.zeros(own.shape[:-2], int) if is_traced(log_ref) else np.asarray(log_ref).argmax(axis=-1)
    with np.errstate(invalid="ignore", over="ignore"):
        ahead = own - np.take_along_axis(own, likeliest[..., None, None], axis=-2)
        return jnp.asarray(ahead.astype(dtype))


@eqx.filter_jit
def _fit(seen: Labelled, epsilon: Float[Array, ""] | None) -> Reranker:
    gone = jnp.mean(seen.off, dtype=seen.x.dtype)
    found, remaining = reward_and_share(seen, epsilon, gone)
    hiding = lies_may_hide(found, remaining, gone)
    possible = _possible(seen.believed_x, found, remaining, hiding)
    return Reranker(found, possible, hiding, remaining > 0.5 / len(seen.labels))


def _possible(
    x: Float[Array, "N k"], found: RewardFit, epsilon: Float[Array, ""], hiding: Bool[Array, ""]
) -> PossibleRewards:
    """`possible_rewards`, found in units of about 1, whose squares no precision flushes to 0 or takes for infinite."""
    unit = typical_powers(x)
    scaled = found._replace(
        theta=found.theta * unit,
        doubted=found.doubted * unit,
        explanations=found.explanations._replace(theta=found.explanations.theta * unit),
    )
    possible = possible_rewards(in_units(x, unit), scaled, epsilon, hiding, believe_disputes=True)
    return possible._replace(sizes=possible.sizes * unit)


@eqx.filter_jit
def _choose(reranker: Reranker, sets, log_ref, temperature: Float[Array, ""]) -> Choice:
    one = lambda phi, ref: _of_one_set(reranker, phi, ref, temperature)  # noqa: E731
    chosen = jax.vmap(one)(sets.reshape(-1, *sets.shape[-2:]), log_ref.reshape(-1, log_ref.shape[-1]))
    return jax.tree.map(lambda leaf: leaf.reshape(*sets.shape[:-2], *leaf.shape[1:]), chosen)


def _of_one_set(
    reranker: Reranker,
    phi: Float[Array, "n k"],
    log_ref: Float[Array, " n"],
    temperature: Float[Array, ""],
) -> Choice:
    """The choice from one set; a candidate of no likelihood is not chosen."""
    likely = jnp.isfinite(log_ref)
    ahead = phi - matmul(jax.nn.softmax(log_ref), phi)
    promised = matmul(ahead, reranker.reward.theta)
    guaranteed = jax.vmap(reranker.possible.guaranteed)(ahead)
    first, careful = (jnp.argmax(jnp.where(likely, gain, -jnp.inf)) for gain in (promised, guaranteed))
    promise = jnp.maximum(promised[first], 0.0)
    unsure, clearly = (jnp.where(reranker.hiding, 0.0, share) * promise for share in (UNCERTAIN, GAINED))
    pessimistic = (
        reranker.feared
        & (promised[first] - guaranteed[first] > unsure)
        & (guaranteed[careful] - guaranteed[first] > clearly)
    )
    score = jnp.where(pessimistic, guaranteed, promised)
    best = jnp.argmax(jnp.where(likely, score, -jnp.inf))
    # At a temperature of 0 the best stands alone; dividing by it is avoided, not corrected.
    warm = jnp.maximum(temperature, jnp.finfo(phi.dtype).tiny)
    gibbs = jax.nn.softmax(jnp.where(likely, log_ref + (score - score[best]) / warm, -jnp.inf))
    only = jax.nn.one_hot(best, len(phi), dtype=phi.dtype)
    probability = jnp.where(temperature > 0, gibbs, only)
    return Choice(jnp.argmax(probability), probability, promised, guaranteed, pessimistic)
