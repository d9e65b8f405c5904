"""`robust_policy`: from preferences to a policy, greedy if the data determine the plan, and otherwise pessimistic."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax._iterate import Status, worst_status
from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.oracles import RLSVI, Oracle
from robust_rlhf_jax.preferences import PreferenceData, as_labelled, ask_table
from robust_rlhf_jax.preferences.table_check import believed as believed_pairs

from .checked_input import check_oracle, checked
from .pessimism import resolve_reference
from .possible_rewards import lies_may_hide, possible_rewards
from .reward_and_share import reward_and_share
from .safe_plan import Planner, safe_plan
from .solution import Solution


def robust_policy(
    key: PRNGKeyArray,
    data: Pairs | PreferenceData,
    epsilon: float | Float[Array, ""] | None = None,
    *,
    oracle: Oracle | None = None,
    reference: Float[Array, "H p"] | None = None,
) -> Solution:
    """A policy from preferences, some of which may be corrupt: safe whatever the coverage.

    `fit_reward` gives θ̂ and the pairs that no plausible explanation of the data disputes. With F the information of
    those pairs alone, Θ = {θ: (θ − θ̂)ᵀF(θ − θ̂) ≤ c²} is what they leave possible. It is narrow in directions that they
    cover, and wide in directions that no pair covers, that only suspects cover of which some are contradicted, or that
    so few pairs cover that most of them may be corrupt. c = 1.645 contains the value of one plan with probability 90 %.
    If the data show corruption and fewer than a share ε of the pairs are disputed, other corrupt pairs may be hidden:
    then c² = χ²₀.₉(rank), which contains the whole θ. Every reward of probability 1/20 or more belongs to Θ, too. The
    plan maximises min over Θ of V^π(θ) − E_ref[φ]·θ (the paper's Algorithm 3 on this set, by the oracle's derivative).
    If the greedy plan at θ̂ is guaranteed about as much, it is returned instead.

    **Arguments:**

    - `key`: for oracles that draw; `data`: `PreferenceData`.
    - `epsilon`: the largest share of corrupt pairs, in [0, ½). None: decided from the evidence; without any, the answer
      is that of ε = 0. False labels on what no honest pair shows leave no evidence: give ε if you fear them.
    - `oracle`: an offline planner whose value can be differentiated, or that gives subgradients; default `RLSVI()`.
    - `reference` [H, p]: E_ref[φ_h] of a policy to be no worse than (`expected_features`); default: the behaviour.

    **Returns:** `Solution` with diagnostics `epsilon` (share of pairs left out), `rank`, `undisputed` (share of pairs),
    `pessimistic` (whether the plan is not the greedy one), `guaranteed_gain` and `promised_gain` over the reference,
    `off_table`, `oracle_calls`, `reward_status`, `oracle_status`.

    **Raises:** ValueError for what is not one key, ε outside [0, ½), malformed or non-finite data, a reference of
    another shape, or an `oracle` without the methods of one, such as a class of oracles.

    **Source:** the paper's Algorithm 3 and Theorem 4.3; the set over explanations and the certificate are ours.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import attacks, robust_policy, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> clean = sample_preferences(jax.random.key(0), mdp, 2000)
    >>> bad = attacks.push_features(jax.random.key(1), clean, 0.1, mdp)
    >>> found = robust_policy(jax.random.key(2), bad, 0.1)
    >>> float(worlds.normalised_gap(mdp, found.policy)) < 0.05
    True
    """
    oracle = RLSVI() if oracle is None else oracle
    check_oracle(oracle)
    data, level = checked(key, data, epsilon, reference)
    return _run(key, data, level, oracle, reference)


@eqx.filter_jit
def _run(
    key: PRNGKeyArray,
    data: PreferenceData,
    epsilon: Float[Array, ""] | None,
    oracle: Oracle,
    reference: Float[Array, "H p"] | None,
) -> Solution:
    believed, off = ask_table(data)
    dtype = data.features.dtype
    # Pairs that the table contradicts are corrupt for certain, and no longer among those that may be.
    gone = jnp.mean(believed_pairs(off), dtype=dtype)
    seen = as_labelled(data)
    found, remaining = reward_and_share(seen, epsilon, gone)
    target = resolve_reference(reference, believed, remaining)
    prepared = oracle.prepare(believed, remaining, key=key)
    planner = Planner(oracle, prepared, target, data.plan_steps, data.stationary)
    hiding = lies_may_hide(found, remaining, gone)
    possible = possible_rewards(seen.believed_x, found, remaining, hiding)
    plan = safe_plan(planner, possible, found.theta, hiding)
    chosen = plan.chosen
    diagnostics = {
        "epsilon": found.epsilon,
        "rank": found.rank,
        "undisputed": jnp.mean(found.undisputed),
        "pessimistic": plan.pessimistic,
        "guaranteed_gain": chosen.guaranteed,
        "promised_gain": chosen.promised,
        "off_table": jnp.mean(off, dtype=dtype),
        "oracle_calls": plan.calls,
        "reward_status": found.status,
        "oracle_status": chosen.status,
    }
    status = worst_status(
        jnp.where(found.status == Status.SEPARABLE, Status.CONVERGED.array(), found.status), chosen.status
    )
    return Solution(chosen.policy, data.per_step(chosen.theta), chosen.value, status, diagnostics)
