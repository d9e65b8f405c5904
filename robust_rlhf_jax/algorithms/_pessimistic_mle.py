"""Pessimism without robustness: the baselines that trust their data but not what the data leave open."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.kernels.linalg import matmul, weighted_second_moment
from robust_rlhf_jax.likelihood.confidence import calibrated_zeta, confidence_set, ellipsoid
from robust_rlhf_jax.likelihood.trimmed import plain_mle
from robust_rlhf_jax.oracles import LSVI, Oracle
from robust_rlhf_jax.preferences import PreferenceData

from .checked_input import check_oracle, checked
from .pessimism import DescentConfig, minimise_pessimistically, pessimistic_solution, resolve_reference
from .solution import Solution

PENALTIES = ("likelihood", "linear")


class PessimisticMLEConfig(eqx.Module):
    """`penalty`: "likelihood" (FREEHAND's confidence set, Zhan et al. 2023) or "linear" (‖·‖_{Σ⁻¹}, Zhu et al. 2023).

    `descent`: how the objective is minimised (default: by differentiating the oracle, which costs a call a
    step); `radius`: bound on ‖θ‖₂, None for √(Hd).

    **Example:**

    >>> from robust_rlhf_jax.algorithms import PessimisticMLEConfig
    >>> config = PessimisticMLEConfig(penalty="linear")
    >>> config.penalty, config.descent.gradient
    ('linear', 'autodiff')
    """

    penalty: str = eqx.field(static=True, default="likelihood")
    descent: DescentConfig = DescentConfig(gradient="autodiff")
    radius: float | Float[Array, ""] | None = None

    def __check_init__(self):
        if self.penalty not in PENALTIES:
            raise ValueError(f"penalty={self.penalty!r} is unknown: it is one of {', '.join(PENALTIES)}.")


def pessimistic_mle(
    key: PRNGKeyArray,
    data: Pairs | PreferenceData,
    epsilon: float | Float[Array, ""],
    *,
    oracle: Oracle | None = None,
    reference: Float[Array, "H p"] | None = None,
    config: PessimisticMLEConfig | None = None,
) -> Solution:
    """Maximum likelihood, a set of plausible rewards about it, and the policy that is best against the worst of them.

    "likelihood": {ℓ(θ) ≥ ℓ(θ̂) − ζ}, FREEHAND of Zhan, Uehara, Kallus, Lee & Sun 2023, ζ the calibrated quantile.
    "linear": {‖θ − θ̂‖_Σ ≤ γ}, Σ the second moment of the differences, of Zhu, Jordan & Jiao 2023: the policy with
    the largest (E_π[φ] − E_ref[φ])·θ̂ − γ‖E_π[φ] − E_ref[φ]‖_{Σ⁻¹}, solved as the min–max that it equals;
    γ² = χ²/(N·c̄), c̄ the mean curvature of the likelihood.

    ε is taken so that all algorithms are called alike, and ignored; the table is not asked. Default oracle: plain LSVI.

    **Returns:** `Solution` with diagnostics as `condition_number`, without `removed_mass`; `zeta` is ζ, or γ²c̄/2.

    **Raises:** ValueError for what is not one key, ε outside [0, ½), malformed data, a reference of another shape,
    or what is no oracle.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import algorithms, sample_preferences, worlds
    >>> mdp, behaviour = worlds.partial_coverage_mdp(jax.random.key(0))
    >>> clean = sample_preferences(jax.random.key(1), mdp, 1000, behaviour=behaviour)
    >>> found = algorithms.pessimistic_mle(jax.random.key(3), clean, 0.0)
    >>> int(found.diagnostics["oracle_calls"]), float(worlds.normalised_gap(mdp, found.policy)) < 0.1
    (101, True)
    """
    data, _ = checked(key, data, epsilon, reference)
    config = PessimisticMLEConfig() if config is None else config
    oracle = LSVI() if oracle is None else oracle
    check_oracle(oracle)
    return _run(key, data, oracle, reference, config)


@eqx.filter_jit
def _run(
    key: PRNGKeyArray,
    data: PreferenceData,
    oracle: Oracle,
    reference: Float[Array, "H p"] | None,
    config: PessimisticMLEConfig,
) -> Solution:
    radius = data.theta_dim**0.5 if config.radius is None else config.radius
    x, nothing = data.differences(), jnp.zeros((), data.features.dtype)
    fit = plain_mle(x, data.labels, radius=radius)
    zeta = calibrated_zeta(nothing, fit.rank, data.n_pairs)
    if config.penalty == "likelihood":
        allowed = confidence_set(x, data.labels, fit.theta, zeta, radius=radius)
    else:
        allowed = _linear_set(x, fit.theta, zeta, radius)
    target = resolve_reference(reference, data, nothing)
    found = minimise_pessimistically(key, data, nothing, oracle, allowed, target, config.descent)
    return pessimistic_solution(data, found, fit.status, allowed, {"zeta": zeta, "rank": fit.rank})


def _linear_set(
    x: Float[Array, "n k"],
    centre: Float[Array, " k"],
    zeta: Float[Array, ""],
    radius: Any,
):
    """The ellipsoid with the curvature of the log-likelihood on average over the rows, instead of row by row."""
    ones = jnp.ones(len(x), x.dtype)
    chances = jax.nn.sigmoid(matmul(x, centre))
    curvature = jnp.mean(chances * (1.0 - chances))
    return ellipsoid(weighted_second_moment(x, ones), centre, jnp.sqrt(2 * zeta / curvature), radius)
