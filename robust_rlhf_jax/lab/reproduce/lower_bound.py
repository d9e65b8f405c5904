"""The lower bound's instance, made as large as each ε can hide."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from robust_rlhf_jax.algorithms import uniform_coverage
from robust_rlhf_jax.kernels.halving import bisect
from robust_rlhf_jax.kernels.linalg import matmul
from robust_rlhf_jax.lab.attacks import impersonate
from robust_rlhf_jax.lab.sweeps.store import Store, part_hash
from robust_rlhf_jax.lab.worlds import hard_instance
from robust_rlhf_jax.mdp import optimal_policy, policy_value
from robust_rlhf_jax.preferences import sample_preferences

HALVINGS = 40
# The `kind` of its parts.
KIND = "lower bound"


def hidden_advantage(
    x: Float[Array, "n k"], direction: Float[Array, " k"], epsilon: float | Float[Array, ""]
):
    """The largest a ≤ 1 with E|σ(a·directionᵀx) − ½| ≤ ε: what an adversary can turn into coin flips."""
    along = matmul(x, direction)

    def affordable(a: Float[Array, ""]):
        return jnp.mean(jnp.abs(jax.nn.sigmoid(a * along) - 0.5)) <= epsilon

    return bisect(affordable, jnp.zeros((), x.dtype), jnp.ones((), x.dtype), HALVINGS)[0]


@eqx.filter_jit
def _gap(seed: Int[Array, ""], epsilon: Float[Array, ""], n_pairs: int, sizes: Any):
    """V★ − V^π of `uniform_coverage` on one world whose labels say nothing of its one decision."""
    k_world, k_data, k_attack, k_solve = jax.random.split(jax.random.key(seed), 4)
    world, behaviour = hard_instance(k_world, advantage=1.0, **sizes)
    # x does not depend on the reward: one draw measures what can be hidden, and is labelled afterwards.
    x = sample_preferences(k_data, world, n_pairs, behaviour=behaviour).differences()
    a = hidden_advantage(x, world.theta.reshape(-1), epsilon)
    mdp = eqx.tree_at(lambda m: m.theta, world, a * world.theta)
    data = sample_preferences(k_data, mdp, n_pairs, behaviour=behaviour)
    solution = uniform_coverage(k_solve, impersonate(k_attack, data, epsilon, mdp), epsilon)
    return optimal_policy(mdp)[1] - policy_value(mdp, solution.policy)


def _one(seed: int, epsilon: float, n_pairs: int, sizes: Any) -> float:
    return float(_gap(jnp.asarray(seed), jnp.asarray(epsilon, float), n_pairs, sizes))


def lower_bound_rows(
    epsilons: Sequence[float],
    seeds: int,
    n_pairs: int,
    sizes: Any,
    on_batch: Callable[[int, int], None],
    store: Store,
) -> list[dict[str, Any]]:
    """Rows (ε, seed, suboptimality) on `hard_instance` worlds of an advantage that ε just hides (at most 1 a step).

    Whether the rare action is good or bad at a step is a coin of the world's own, and the labels are coins too: any
    algorithm loses on average half of what is at stake, which grows like ε.
    """
    rows: list[dict[str, Any]] = []
    for epsilon in epsilons:
        name = "lower_bound-" + part_hash("lower bound", n_pairs, seeds, float(epsilon), sizes)
        found = store.read(name)
        resumed = found is not None
        if found is None:
            found = [
                {"epsilon": float(epsilon), "seed": s, "suboptimality": _one(s, epsilon, n_pairs, sizes)}
                for s in range(seeds)
            ]
            store.write(name, found, KIND)
        rows += found
        on_batch(seeds, seeds if resumed else 0)
    return rows
