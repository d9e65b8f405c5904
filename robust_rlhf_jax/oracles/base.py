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
    """
    if chunk < 1:
        raise ValueError(f"chunk={chunk}: give 1 or more.")
    return jax.lax.map(lambda theta: oracle.solve(prepared, theta), thetas, batch_size=chunk)


@runtime_checkable
class Oracle(Protocol):
    """Corruption-robust offline planner (paper: RobRL). Implementations are `eqx.Module`s without overriding.

    `prepare` does whatever depends on the data alone. `solve` is pure, jit-, vmap- and, where the oracle says
    so, differentiable in `theta` [H, p].
    """

    def prepare(self, data: PreferenceData, epsilon: Float[Array, ""], *, key: PRNGKeyArray) -> Any: ...

    def solve(self, prepared: Any, theta: Float[Array, "H p"]) -> OracleResult: ...


@runtime_checkable
class WarmOracle(Oracle, Protocol):
    """An oracle that can go on from its answer for another θ: `start` once, then `solve_from` again and again.

    `shortened`: the same oracle with fewer iterations a call, which are enough from a warm start; given several
    numbers, an oracle that makes any of them, as `steps` of `solve_from` tells it (None: as many as it can).
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
