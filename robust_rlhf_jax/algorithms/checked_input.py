"""What every algorithm checks before anything is compiled: key, ε, data, which get their table, and reference."""

from typing import Any

import jax.numpy as jnp
from jax.dtypes import canonicalize_dtype
from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax.checks import check_epsilon, check_key, is_traced
from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.oracles import Oracle
from robust_rlhf_jax.preferences import PreferenceData, with_table


def checked(
    key: PRNGKeyArray,
    data: Pairs | PreferenceData,
    epsilon: float | Float[Array, ""] | None,
    reference: Float[Array, "H p"] | None = None,
) -> tuple[PreferenceData, Any]:
    """(data that can be planned on, ε in their precision, or None if it is not given).

    **Raises:** ValueError for what is not one key, ε outside [0, ½), data that `check_preferences` refuses, or a
    reference that is misshapen or not finite.
    """
    check_key(key)
    if epsilon is not None:
        check_epsilon(epsilon)
    data = with_table(data)
    if reference is not None:
        _check_reference(reference, (data.plan_steps, data.reward_dim))
    return data, None if epsilon is None else jnp.asarray(epsilon, canonicalize_dtype(data.features.dtype))


def check_oracle(oracle: Any) -> None:
    """**Raises:** ValueError for what is no oracle, such as the class of one."""
    if isinstance(oracle, type):
        raise ValueError(
            f"oracle={oracle.__name__} is a class: give an oracle of it, such as {oracle.__name__}()."
        )
    if not isinstance(oracle, Oracle):
        raise ValueError(
            f"oracle={oracle!r} is no oracle: give one of robust_rlhf_jax.oracles, such as RLSVI()."
        )


def _check_reference(reference: Float[Array, "H p"], wanted: tuple[int, int]) -> None:
    if jnp.shape(reference) != wanted:
        raise ValueError(
            f"reference has shape {jnp.shape(reference)}: give E_ref[φ] of shape {wanted}, as expected_features "
            "returns it."
        )
    if not is_traced(reference) and not bool(jnp.all(jnp.isfinite(jnp.asarray(reference)))):
        raise ValueError("reference holds NaN or infinite entries: give finite feature expectations.")
