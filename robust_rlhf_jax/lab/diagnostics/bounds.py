"""The gaps that the paper promises (Table 1) as numbers, to lay beside measured ones.

The paper states them up to constants and logarithms. Here every hidden constant is 1 and no logarithm is kept, so a
value says how the promise scales, not what it guarantees; nearly always it exceeds every possible gap.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from robust_rlhf_jax.checks import check_epsilons, is_traced

Scalar = float | Float[Array, ""]

# Each row's power of ε as ε → 0 (Table 1); the first up to o(1).
EXPONENTS = {"uniform": 1.0, "condition_number": 0.25, "coverage_ratio": 0.5}


def _capped(bound: Scalar, largest: Scalar | None) -> Float[Array, ""]:
    bound = jnp.asarray(bound)
    return bound if largest is None else jnp.minimum(bound, largest)


def uniform_bound(
    epsilon: Scalar, *, horizon: int, dim: int, xi: Scalar, largest: Scalar | None = None
) -> Float[Array, ""]:
    """ε(H³ + √(Hd))/ξ (paper: Table 1 row 1, Proposition 3.5), for N → ∞.

    The factor exp(2L + √log(1/2δε)) that its o(1) stands for is left out. The analysis asks for ξ ≥ 5ε.

    **Arguments:** `xi` as in `Coverage`; `largest`: V★ − V_min, or 1 for normalised gaps: no gap is larger.

    **Raises:** ValueError for ε outside [0, ½), or ξ that is not positive and finite.

    **Example:**

    >>> from robust_rlhf_jax.lab.diagnostics import uniform_bound
    >>> [round(float(uniform_bound(epsilon, horizon=2, dim=3, xi=0.5)), 2) for epsilon in (0.01, 0.04)]
    [0.21, 0.84]
    """
    check_epsilons(epsilon)
    if not is_traced(xi) and not (np.isfinite(xi) & (np.asarray(xi) > 0)).all():
        raise ValueError(f"xi={xi} must be positive and finite.")
    return _capped(epsilon * (horizon**3 + (horizon * dim) ** 0.5) / xi, largest)


def condition_number_bound(
    epsilon: Scalar,
    *,
    horizon: int,
    dim: int,
    alpha: Scalar,
    kappa: Scalar,
    n_pairs: int | None = None,
    miss: float = 0.1,
    largest: Scalar | None = None,
) -> Float[Array, ""]:
    """H²dκ√(αε) + H^{5/4}d^{3/4}(αε)^{1/4} (paper: Table 1 row 2, Proposition 4.5).

    With `n_pairs` also `sampling_term` (Theorem 4.3); without it N → ∞.

    **Raises:** ValueError for ε outside [0, ½).

    **Example:**

    >>> from robust_rlhf_jax.lab.diagnostics import condition_number_bound
    >>> float(condition_number_bound(0.01, horizon=2, dim=3, alpha=1.0, kappa=4.0)) > 1  # vacuous
    True
    >>> float(condition_number_bound(0.01, horizon=2, dim=3, alpha=1.0, kappa=4.0, largest=1.0))
    1.0
    """
    check_epsilons(epsilon)
    level = jnp.asarray(alpha * epsilon)
    bound = horizon**2 * dim * kappa * jnp.sqrt(level) + horizon**1.25 * dim**0.75 * level**0.25
    return _capped(bound + _sampling(n_pairs, horizon, dim, alpha, kappa, miss), largest)


def coverage_ratio_bound(
    epsilon: Scalar,
    *,
    horizon: int,
    dim: int,
    nu: Scalar,
    kappa: Scalar,
    alpha: Scalar | None = None,
    n_pairs: int | None = None,
    miss: float = 0.1,
    largest: Scalar | None = None,
) -> Float[Array, ""]:
    """νκ√ε·H²d^{3/2} (paper: Table 1 row 3, Proposition 5.4).

    With `n_pairs` and `alpha` also `sampling_term` (Theorem 5.1); without them N → ∞.

    **Raises:** ValueError for `n_pairs` without `alpha`, or ε outside [0, ½).

    **Example:**

    >>> from robust_rlhf_jax.lab.diagnostics import coverage_ratio_bound
    >>> [round(float(coverage_ratio_bound(e, horizon=2, dim=3, nu=1.0, kappa=4.0)), 2) for e in (0.01, 0.04)]
    [8.31, 16.63]
    """
    if n_pairs is not None and alpha is None:
        raise ValueError(f"n_pairs={n_pairs} without alpha: the sampling term of Theorem 5.1 needs both.")
    check_epsilons(epsilon)
    bound = nu * kappa * jnp.sqrt(jnp.asarray(epsilon)) * horizon**2 * dim**1.5
    return _capped(bound + _sampling(n_pairs, horizon, dim, alpha, kappa, miss), largest)


def sampling_term(
    n_pairs: int, *, horizon: int, dim: int, alpha: Scalar, kappa: Scalar, miss: float = 0.1
) -> Float[Array, ""]:
    """κ√α·√(d/N·log(HdN/δ)) (paper: Theorems 4.3 and 5.1): what finite data cost even at ε = 0.

    **Example:**

    >>> from robust_rlhf_jax.lab.diagnostics import sampling_term
    >>> [round(float(sampling_term(n_pairs, horizon=2, dim=3, alpha=1.0, kappa=4.0)), 2) for n_pairs in (1000, 100_000)]
    [0.73, 0.09]
    """
    return kappa * jnp.sqrt(jnp.asarray(alpha * dim / n_pairs * jnp.log(horizon * dim * n_pairs / miss)))


def _sampling(n_pairs: int | None, horizon: int, dim: int, alpha: Any, kappa: Scalar, miss: float):
    if n_pairs is None:
        return 0.0
    return sampling_term(n_pairs, horizon=horizon, dim=dim, alpha=alpha, kappa=kappa, miss=miss)


def lower_bound(
    epsilon: Scalar, *, horizon: int, dim: int, largest: Scalar | None = None
) -> Float[Array, ""]:
    """εHd: what no algorithm beats on some world (Zhang, Chen, Zhu & Sun 2022, *Corruption-robust offline RL*).

    **Raises:** ValueError for ε outside [0, ½).

    **Example:**

    >>> from robust_rlhf_jax.lab.diagnostics import lower_bound
    >>> [round(float(lower_bound(0.1, horizon=5, dim=6, largest=largest)), 2) for largest in (None, 1.0)]
    [3.0, 1.0]
    """
    check_epsilons(epsilon)
    return _capped(jnp.asarray(epsilon * horizon * dim), largest)


def oracle_calls(
    coverage: str,
    epsilon: Scalar,
    *,
    horizon: int | None = None,
    dim: int | None = None,
    nu: Scalar | None = None,
) -> Float[Array, ""]:
    """Calls of the planner (paper: Table 1): 1, H^{3/2}d⁵/ε³ or 1/(εν), as printed and with every constant 1.

    What an implementation needs is T·(K + 1) + 1 with `algorithms.theory_parameters`, T + 1 with
    `algorithms.first_order_parameters`; docs/errata.md says how the printed counts differ.

    **Arguments:** `coverage`: a key of `EXPONENTS`: "uniform", "condition_number" (needs `horizon` and `dim`) or
    "coverage_ratio" (needs `nu`).

    **Raises:** ValueError for another `coverage`, if what it needs is missing, or for ε outside [0, ½).

    **Example:**

    >>> from robust_rlhf_jax.lab.diagnostics import oracle_calls
    >>> round(float(oracle_calls("uniform", 0.1))), round(float(oracle_calls("coverage_ratio", 0.1, nu=0.5)))
    (1, 20)
    """
    needs = {
        "uniform": {},
        "condition_number": {"horizon": horizon, "dim": dim},
        "coverage_ratio": {"nu": nu},
    }
    if coverage not in needs:
        raise ValueError(f"coverage={coverage!r} is unknown: it is one of {', '.join(needs)}.")
    check_epsilons(epsilon)
    missing = [name for name, value in needs[coverage].items() if value is None]
    if missing:
        raise ValueError(f"coverage={coverage!r} needs {' and '.join(missing)}.")
    if coverage == "condition_number" and horizon is not None and dim is not None:
        return jnp.asarray(horizon**1.5 * dim**5 / epsilon**3)
    if coverage == "coverage_ratio" and nu is not None:
        return jnp.asarray(1.0 / (epsilon * nu))
    return jnp.asarray(1.0)
