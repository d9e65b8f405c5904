"""Several adversaries who share one budget."""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from robust_rlhf_jax.corruption_budget import corruption_count
from robust_rlhf_jax.mdp import LinearMDP
from robust_rlhf_jax.preferences import PreferenceData

from ._corrupt_transitions import corrupt_transitions
from ._corrupt_transitions_on_table import corrupt_transitions_on_table
from ._flip_confident import flip_confident
from ._push_features import push_features
from ._push_on_table import push_on_table
from .base import Attack
from .listed import check_attacked, listed


def compose(*attacks: Attack, shares: Sequence[float] | None = None) -> Attack:
    """The attack that applies `attacks` in turn, each to what the one before left, with its share of ε.

    `shares`: non-negative numbers that sum to 1, one per attack; equal by default. The shares of ⌊εN⌋ are
    rounded so that they sum to it; attacks may pick the same pair, so at most ⌊εN⌋ pairs change.

    **Raises:** ValueError for no attacks, what is none, or shares of another number, negative or of another sum; the
    composed attack for an attack that returns no data, or another number of pairs.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import attacks, changed_pairs, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> clean = sample_preferences(jax.random.key(0), mdp, 200)
    >>> both = attacks.compose(attacks.flip_random, attacks.mimicry, shares=[0.25, 0.75])
    >>> bad = both(jax.random.key(1), clean, 0.1, mdp)
    >>> int(changed_pairs(clean, bad).sum()) <= 20
    True
    """
    for attack in attacks:
        if not callable(attack):
            raise ValueError(
                f"{attack!r} is no attack: give functions, such as attacks.ATTACKS['flip_random']."
            )
    shares = [1.0 / max(len(attacks), 1)] * len(attacks) if shares is None else [float(s) for s in shares]
    if not attacks or len(shares) != len(attacks):
        raise ValueError(
            f"compose got {len(attacks)} attacks and {len(shares)} shares: give one share an attack."
        )
    if min(shares) < 0 or not np.isclose(sum(shares), 1.0):
        raise ValueError(f"shares={shares} must be non-negative and sum to 1.")
    ends = [0.0, *list(accumulate(shares))[:-1], 1.0]

    def composed(key, data, epsilon, mdp):
        check_attacked(key, data, mdp, or_none=True)  # each attack says whether it needs the MDP
        total = corruption_count(epsilon, data.n_pairs)
        # The last end is exactly 1, so that nothing of the budget is lost to rounding.
        reached = [jnp.round(end * total) for end in ends]
        for attack, k, (low, high) in zip(
            attacks, jax.random.split(key, len(attacks)), pairwise(reached), strict=True
        ):
            data = _attacked(attack, data, attack(k, data, (high - low) / data.n_pairs, mdp))
        return data

    return composed


def _attacked(attack: Attack, data: PreferenceData, found: Any) -> PreferenceData:
    """What an attack made of the data.

    **Raises:** ValueError where that is no `PreferenceData`, or has another number of pairs.
    """
    if isinstance(found, PreferenceData) and found.n_pairs == data.n_pairs:
        return found
    name = getattr(attack, "__name__", repr(attack))
    made = f"{found.n_pairs} pairs" if isinstance(found, PreferenceData) else type(found).__name__
    raise ValueError(
        f"the attack {name} made {made} of {data.n_pairs} pairs: return PreferenceData of as many, such as "
        "dataclasses.replace(data, labels=…)."
    )


_joint = compose(flip_confident, push_features, corrupt_transitions)


@listed(untouched=("actions",), at_most=True, off_table=True)
def joint(key: PRNGKeyArray, data: PreferenceData, epsilon: float | Float[Array, ""], mdp: LinearMDP):
    """`flip_confident`, `push_features` and `corrupt_transitions` with a third of the budget each.

    Labels, features and transitions at once, as the paper's adversary may. At most ⌊εN⌋ pairs change.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import attacks, changed_pairs, off_table, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> clean = sample_preferences(jax.random.key(0), mdp, 200)
    >>> bad = attacks.joint(jax.random.key(1), clean, 0.1, mdp)
    >>> int(changed_pairs(clean, bad).sum()), int(off_table(bad).sum())
    (20, 13)
    """
    return _joint(key, data, epsilon, mdp)


_joint_on_table = compose(flip_confident, push_on_table, corrupt_transitions_on_table)


@listed(at_most=True)
def joint_on_table(
    key: PRNGKeyArray, data: PreferenceData, epsilon: float | Float[Array, ""], mdp: LinearMDP
):
    """`flip_confident`, `push_on_table` and `corrupt_transitions_on_table` with a third of the budget each.

    Labels, trajectories and transitions at once, and every recorded feature is the table's. At most ⌊εN⌋ pairs change.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import attacks, changed_pairs, off_table, sample_preferences, worlds
    >>> mdp = worlds.chain_mdp()
    >>> clean = sample_preferences(jax.random.key(0), mdp, 200)
    >>> bad = attacks.joint_on_table(jax.random.key(1), clean, 0.1, mdp)
    >>> int(changed_pairs(clean, bad).sum()), int(off_table(bad).sum())
    (20, 0)
    """
    return _joint_on_table(key, data, epsilon, mdp)
