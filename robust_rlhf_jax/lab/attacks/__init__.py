"""Adversaries: one file each, one signature, `attack(key, data, epsilon, mdp) -> data`; `ATTACKS` by name.

Every function here that is marked `@listed()` (`listed.py`) is in `ATTACKS` and can be imported from this package;
nothing is written down twice.
"""

from robust_rlhf_jax.collected import modules_of
from robust_rlhf_jax.corruption_budget import corruption_count

from ._adaptive import adaptive, adaptive_filtered
from ._adaptive_on_table import adaptive_filtered_on_table, adaptive_on_table
from ._compose import compose, joint, joint_on_table
from ._corrupt_transitions import corrupt_transitions
from ._corrupt_transitions_on_table import corrupt_transitions_on_table
from ._flip_confident import flip_confident
from ._flip_random import flip_random
from ._goal_haters import goal_haters
from ._impersonate import affordable_shrinkage, impersonate
from ._least_covered import least_covered
from ._leverage_on_table import leverage_on_table
from ._leverage_points import leverage_points
from ._mimicry import mimicry
from ._praise_rare import praise_rare
from ._push_features import push_features
from ._push_on_table import push_on_table
from ._scale_features import scale_features
from ._scale_on_table import scale_on_table
from .base import Attack, identifiable_theta
from .implicit import fitted_theta
from .listed import attacks_in
from .teachers import teacher_mistake, teacher_myopic, teacher_skip, teacher_stochastic

# The published attacks, in the order of tables and help texts; an attack that is not here follows, by name.
FIRST = (
    "flip_random",
    "flip_confident",
    "teacher_stochastic",
    "teacher_myopic",
    "teacher_mistake",
    "teacher_skip",
    "least_covered",
    "impersonate",
    "praise_rare",
    "push_features",
    "scale_features",
    "leverage_points",
    "mimicry",
    "corrupt_transitions",
    "joint",
    "adaptive",
    "adaptive_filtered",
    # From here on whole trajectories are replaced: every recorded feature is that of the table.
    "goal_haters",
    "push_on_table",
    "scale_on_table",
    "leverage_on_table",
    "corrupt_transitions_on_table",
    "joint_on_table",
    "adaptive_on_table",
    "adaptive_filtered_on_table",
)
ATTACKS: dict[str, Attack] = attacks_in(modules_of(__name__), FIRST)

__all__ = [
    "ATTACKS",
    "Attack",
    "adaptive",
    "adaptive_filtered",
    "adaptive_filtered_on_table",
    "adaptive_on_table",
    "affordable_shrinkage",
    "compose",
    "corrupt_transitions",
    "corrupt_transitions_on_table",
    "corruption_count",
    "fitted_theta",
    "flip_confident",
    "flip_random",
    "goal_haters",
    "identifiable_theta",
    "impersonate",
    "joint",
    "joint_on_table",
    "least_covered",
    "leverage_on_table",
    "leverage_points",
    "mimicry",
    "praise_rare",
    "push_features",
    "push_on_table",
    "scale_features",
    "scale_on_table",
    "teacher_mistake",
    "teacher_myopic",
    "teacher_skip",
    "teacher_stochastic",
]
__all__ += [name for name in ATTACKS if name not in __all__]


def __getattr__(name: str) -> Attack:
    """Attacks that are listed and not imported above."""
    if name in ATTACKS:
        return ATTACKS[name]
    raise AttributeError(f"There is no attack {name!r}: they are {', '.join(ATTACKS)}.")
