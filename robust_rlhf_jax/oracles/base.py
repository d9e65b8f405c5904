"""What an oracle is: prepared once per data set, solved for any number of reward parameters."""

from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import jax
from jaxtyping import Array, Float, Int, PRNGKeyArray

from robust_rlhf_jax.mdp import Policy
from robust_rlhf_jax.preferences import PreferenceData


class OracleResult(eqx.Module):
    """Answer of an oracle for one θ.

    `value`: estimate of V★(θ); `policy` [H, S, A], or a mixture; `status`: a `Status` code; `subgradient` [H, p]: an
    estimate of a subgradient of V★ at θ, or None; `details`: what else the oracle knows, by name.

    **Example:**

    >>> import jax, jax.numpy as jnp
    >>> from robust_rlhf_jax import Status, oracles, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> data = sample_preferences(jax.random.key(0), mdp, 200)
    >>> oracle = oracles.ExactOracle(mdp)
    >>> found = oracle.solve(oracle.prepare(data, jnp.float32(0.0), key=jax.random.key(1)), mdp.theta)
    >>> found.policy.shape, found.subgradient.shape, Status(int(found.status)).name
    ((10, 20, 2), (10, 10), 'CONVERGED')
    """

    value: Float[Array, ""]
    policy: Policy
    status: Int[Array, ""]
    subgradient: Float[Array, "H p"] | None = None
    details: dict[str, Array] | None = None


def solve_many(
    oracle: "Oracle", prepared: Any, thetas: Float[Array, "B H p"], chunk: int = 16
) -> OracleResult:
    """`oracle.solve` for every θ of a batch, `chunk` at a time; the results carry a leading axis B.

    One plain vmap over hundreds of θ streams [n, B] residuals through memory; a chunk keeps them in cache. On a
    GPU take a larger chunk.

    **Raises:** ValueError for `chunk` < 1.

    **Example:**

    >>> import jax, jax.numpy as jnp
    >>> from robust_rlhf_jax import oracles, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> data = sample_preferences(jax.random.key(0), mdp, 200)
    >>> oracle = oracles.ExactOracle(mdp)
    >>> prepared = oracle.prepare(data, jnp.float32(0.0), key=jax.random.key(1))
    >>> found = oracles.solve_many(oracle, prepared, jnp.stack([mdp.theta, -mdp.theta]))
    >>> found.policy.shape, found.value.shape
    ((2, 10, 20, 2), (2,))
    """
    if chunk < 1:
        raise ValueError(f"chunk={chunk}: give 1 or more.")
    return jax.lax.map(lambda theta: oracle.solve(prepared, theta), thetas, batch_size=chunk)


@runtime_checkable
class Oracle(Protocol):
    """Corruption-robust offline planner (paper: RobRL). Implementations are `eqx.Module`s without overriding.

    `prepare` does whatever depends on the data alone. `solve` is pure, jit-, vmap- and, where the oracle says
    so, differentiable in `theta` [H, p].

    **Example:**

    >>> from robust_rlhf_jax import oracles, worlds
    >>> isinstance(oracles.ExactOracle(worlds.chain_mdp()), oracles.Oracle)
    True
    """

    def prepare(self, data: PreferenceData, epsilon: Float[Array, ""], *, key: PRNGKeyArray) -> Any: ...

    def solve(self, prepared: Any, theta: Float[Array, "H p"]) -> OracleResult: ...


@runtime_checkable
class WarmOracle(Oracle, Protocol):
    """An oracle that can go on from its answer for another θ: `start` once, then `solve_from` again and again.

    `shortened`: the same oracle with fewer iterations a call, which are enough from a warm start; given several
    numbers, an oracle that makes any of them, as `steps` of `solve_from` tells it (None: as many as it can).

    **Example:**

    >>> from robust_rlhf_jax import oracles
    >>> [isinstance(oracle, oracles.WarmOracle) for oracle in (oracles.PrimalDual(), oracles.LSVI())]
    [True, False]
    """

    def shortened(self, *steps: int) -> "WarmOracle": ...

    def start(self, prepared: Any) -> Any: ...

    def solve_from(
        self,
        prepared: Any,
        theta: Float[Array, "H p"],
        warm: Any,
        steps: int | Int[Array, ""] | None = None,
    ) -> tuple[OracleResult, Any]: ...
