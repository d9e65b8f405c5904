"""Exact planning, policy evaluation and occupancy measures by dynamic programming."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from robust_rlhf_jax.checks import ROUNDING, are_chances, is_traced
from robust_rlhf_jax.kernels.linalg import einsum, matmul
from robust_rlhf_jax.kernels.primal_dual import softmax_policy
from robust_rlhf_jax.module import Module

from .linear_mdp import LinearMDP


class MixturePolicy(Module):
    """Draw k with probability `weights[k]` at the start of an episode, then follow `policies[k]` throughout.

    Not the policy that averages action probabilities: its value is Σ_k weights[k]·V^{π_k}, exactly.

    **Example:**

    >>> import jax.numpy as jnp
    >>> from robust_rlhf_jax import mdp, worlds
    >>> chain = worlds.chain_mdp()
    >>> best, worst = mdp.optimal_policy(chain)[0], mdp.optimal_policy(chain, -chain.theta)[0]
    >>> mixture = mdp.MixturePolicy(jnp.stack([best, worst]), jnp.array([0.75, 0.25]))
    >>> round(float(mdp.normalised_gap(chain, mixture)), 3)
    0.25
    """

    policies: Float[Array, "K H S A"]
    weights: Float[Array, " K"]

    def mean_over(
        self, function: Callable[[Float[Array, "H S A"]], Float[Array, "*n"]]
    ) -> Float[Array, "*n"]:
        """Σ_k weights[k]·function(π_k)."""
        return jnp.tensordot(self.weights, jax.vmap(function)(self.policies), axes=1, precision="highest")


class SoftmaxMixture(Module):
    """A `MixturePolicy` of softmax policies π_k(a|s) ∝ exp(φ(s,a)ᵀlogits_k), kept as their parameters.

    `table` [S, A, d] of features, `logits` [K, H, d], `weights` [K]. Evaluated exactly, member by member, so that
    thousands of them cost no [K, H, S, A] array.

    **Example:**

    >>> import jax.numpy as jnp
    >>> from robust_rlhf_jax import mdp, worlds
    >>> chain = worlds.chain_mdp()
    >>> mixture = mdp.SoftmaxMixture(chain.features, jnp.zeros((2, chain.horizon, chain.dim)), jnp.array([0.5, 0.5]))
    >>> bool(jnp.allclose(mixture.member(mixture.logits[0]), mdp.uniform_policy(chain)))
    True
    """

    table: Float[Array, "S A d"]
    logits: Float[Array, "K H d"]
    weights: Float[Array, " K"]

    def member(self, logits: Float[Array, "H d"]) -> Float[Array, "H S A"]:
        """The policy of one row of `logits`."""
        return softmax_policy(self.table, logits)

    def mean_over(self, function: Callable[[Float[Array, "H S A"]], Any]):
        """Σ_k weights[k]·function(π_k)."""

        def add(total, member):
            weight, logits = member
            return jax.tree.map(lambda t, x: t + weight * x, total, function(self.member(logits))), None

        shapes = jax.eval_shape(lambda: function(self.member(self.logits[0])))
        zero = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
        return jax.lax.scan(add, zero, (self.weights, self.logits))[0]


Policy = Float[Array, "H S A"] | MixturePolicy | SoftmaxMixture


def _expected_next(mdp: LinearMDP, measure: Float[Array, "d S"], next_value: Float[Array, " S"]):
    """E[V(s')|s,a] = φ(s,a)·(μ_h V), without forming the [S·A, S] transition matrix."""
    return matmul(mdp.features, matmul(measure, next_value))


@jax.jit
def optimal_policy(
    mdp: LinearMDP, theta: Float[Array, "H p"] | None = None
) -> tuple[Float[Array, "H S A"], Float[Array, ""]]:
    """Deterministic optimal policy (one-hot, first best action) and V★(θ) = ρᵀV★_1.

    **Example:**

    >>> from robust_rlhf_jax import worlds
    >>> from robust_rlhf_jax.mdp import optimal_policy
    >>> policy, value = optimal_policy(worlds.chain_mdp())
    >>> policy.shape, round(float(value), 2)
    ((10, 20, 2), 4.82)
    """

    def backward(next_value, step):
        measure, reward = step
        q = reward + _expected_next(mdp, measure, next_value)
        return jnp.max(q, axis=-1), jax.nn.one_hot(jnp.argmax(q, axis=-1), mdp.n_actions, dtype=q.dtype)

    first = jnp.zeros(mdp.n_states, mdp.features.dtype)
    steps = (mdp.transition_measures, mdp.rewards(theta))
    value, policy = jax.lax.scan(backward, first, steps, reverse=True)
    return policy, matmul(mdp.initial_distribution, value)


def optimal_state_values(mdp: LinearMDP, theta: Float[Array, "H p"] | None = None) -> Float[Array, "H+1 S"]:
    """V★_h(s) for h = 1…H+1 (the last row is zero).

    **Example:**

    >>> from robust_rlhf_jax import worlds
    >>> from robust_rlhf_jax.mdp import optimal_state_values
    >>> values = optimal_state_values(worlds.chain_mdp())
    >>> values.shape, float(values[-1].max())
    ((11, 20), 0.0)
    """

    def backward(next_value, step):
        measure, reward = step
        value = jnp.max(reward + _expected_next(mdp, measure, next_value), axis=-1)
        return value, value

    first = jnp.zeros(mdp.n_states, mdp.features.dtype)
    steps = (mdp.transition_measures, mdp.rewards(theta))
    _, values = jax.lax.scan(backward, first, steps, reverse=True)
    return jnp.concatenate([values, first[None]])


@jax.jit
def policy_value(
    mdp: LinearMDP, policy: Policy, theta: Float[Array, "H p"] | None = None
) -> Float[Array, ""]:
    """V^π(θ) = ρᵀV^π_1, exactly; for a mixture the weighted mean of its members' values.

    **Example:**

    >>> from robust_rlhf_jax import worlds
    >>> from robust_rlhf_jax.mdp import optimal_policy, policy_value, uniform_policy
    >>> chain = worlds.chain_mdp()
    >>> [round(float(policy_value(chain, policy)), 2) for policy in (optimal_policy(chain)[0], uniform_policy(chain))]
    [4.82, 0.54]
    """
    if isinstance(policy, MixturePolicy | SoftmaxMixture):
        return policy.mean_over(lambda p: policy_value(mdp, p, theta))

    def backward(next_value, step):
        measure, reward, action_probabilities = step
        q = reward + _expected_next(mdp, measure, next_value)
        return jnp.sum(action_probabilities * q, axis=-1), None

    first = jnp.zeros(mdp.n_states, mdp.features.dtype)
    value, _ = jax.lax.scan(
        backward, first, (mdp.transition_measures, mdp.rewards(theta), policy), reverse=True
    )
    return matmul(mdp.initial_distribution, value)


@jax.jit
def occupancy(mdp: LinearMDP, policy: Policy) -> Float[Array, "H S A"]:
    """q_h(s,a) = Pr(s_h = s, a_h = a | π): q_1 = π_1ρ, q_{h+1}(s',a') = π_{h+1}(a'|s')·μ_h(s')ᵀΦᵀq_h.

    **Example:**

    >>> from robust_rlhf_jax import worlds
    >>> from robust_rlhf_jax.mdp import occupancy, uniform_policy
    >>> chain = worlds.chain_mdp()
    >>> visits = occupancy(chain, uniform_policy(chain))
    >>> visits.shape, round(float(visits[-1].sum()), 3)
    ((10, 20, 2), 1.0)
    """
    if isinstance(policy, MixturePolicy | SoftmaxMixture):
        return policy.mean_over(lambda p: occupancy(mdp, p))

    def forward(state_distribution, step):
        measure, action_probabilities = step
        q = state_distribution[:, None] * action_probabilities
        return matmul(einsum("sa,sad->d", q, mdp.features), measure), q

    _, q = jax.lax.scan(forward, mdp.initial_distribution, (mdp.transition_measures, policy))
    return q


def expected_features(mdp: LinearMDP, policy: Policy) -> Float[Array, "H p"]:
    """E_π[φ_h] = Φᵀq_h over the reward features: the gradient of V^π(θ) in θ.

    **Example:**

    >>> from robust_rlhf_jax import worlds
    >>> from robust_rlhf_jax.mdp import expected_features, optimal_policy
    >>> chain = worlds.chain_mdp()
    >>> best, value = optimal_policy(chain)
    >>> bool(abs((expected_features(chain, best) * chain.theta).sum() - value) < 1e-4)
    True
    """
    return einsum("hsa,sap->hp", occupancy(mdp, policy), mdp.reward_table)


def normalised_gap(mdp: LinearMDP, policy: Policy) -> Float[Array, ""]:
    """(V★ − V^π)/(V★ − V_min) under the true reward: 0 for an optimal policy, 1 for the worst one.

    **Raises:** ValueError for an array that is no policy of this MDP, chances that are negative or sum to another
    number than 1, or where all policies have the same value, both outside of jit; there the last is NaN.

    **Example:**

    >>> from robust_rlhf_jax import worlds
    >>> from robust_rlhf_jax.mdp import normalised_gap, optimal_policy
    >>> chain = worlds.chain_mdp()
    >>> policies = [optimal_policy(chain, theta)[0] for theta in (chain.theta, -chain.theta)]
    >>> [round(float(normalised_gap(chain, policy)), 3) for policy in policies]
    [0.0, 1.0]
    """
    if not isinstance(policy, MixturePolicy | SoftmaxMixture):
        _check_policy(mdp, policy)
    gap, span = _gap_and_span(mdp, policy)
    if not is_traced(span) and jnp.ndim(span) == 0 and span <= 0:
        raise ValueError("Every policy has the same value under this reward: there is no gap to normalise.")
    return gap


def _check_policy(mdp: LinearMDP, policy: Any) -> None:
    shape = (mdp.horizon, mdp.n_states, mdp.n_actions)
    if jnp.shape(policy) != shape:
        raise ValueError(f"policy has shape {jnp.shape(policy)}; this MDP needs [H, S, A] = {shape}.")
    held = jnp.result_type(policy)
    rounding = float(jnp.finfo(held).eps) if held in (jnp.float16, jnp.bfloat16) else ROUNDING
    if not is_traced(policy) and not are_chances(policy, rounding):
        raise ValueError(
            "policy is not a policy: the chances of the actions in each state must be ≥ 0 and sum to 1."
        )


@jax.jit
def _gap_and_span(mdp: LinearMDP, policy: Policy):
    _, best = optimal_policy(mdp)
    worst = -optimal_policy(mdp, -mdp.theta)[1]
    return (best - policy_value(mdp, policy)) / (best - worst), best - worst
