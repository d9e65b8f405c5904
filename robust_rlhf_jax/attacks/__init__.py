"""Adversaries: one file each, one signature, `attack(key, data, epsilon, mdp) -> data`; `ATTACKS` by name."""

from .adaptive import adaptive, adaptive_filtered
from .base import Attack, corruption_count, identifiable_theta
from .compose import compose, joint
from .flip_confident import flip_confident
from .flip_random import flip_random
from .impersonate import affordable_shrinkage, impersonate
from .implicit import fitted_theta
from .least_covered import least_covered
from .leverage_points import leverage_points
from .mimicry import mimicry
from .praise_rare import praise_rare
from .push_features import push_features
from .scale_features import scale_features
from .spoil_transitions import spoil_transitions
from .teachers import teacher_mistake, teacher_myopic, teacher_skip, teacher_stochastic

ATTACKS: dict[str, Attack] = {
    "flip_random": flip_random,
    "flip_confident": flip_confident,
    "teacher_stochastic": teacher_stochastic,
    "teacher_myopic": teacher_myopic,
    "teacher_mistake": teacher_mistake,
    "teacher_skip": teacher_skip,
    "least_covered": least_covered,
    "impersonate": impersonate,
    "praise_rare": praise_rare,
    "push_features": push_features,
    "scale_features": scale_features,
    "leverage_points": leverage_points,
    "mimicry": mimicry,
    "spoil_transitions": spoil_transitions,
    "joint": joint,
    "adaptive": adaptive,
    "adaptive_filtered": adaptive_filtered,
}

__all__ = [
    "ATTACKS",
    "Attack",
    "adaptive",
    "adaptive_filtered",
    "affordable_shrinkage",
    "compose",
    "corruption_count",
    "fitted_theta",
    "flip_confident",
    "flip_random",
    "identifiable_theta",
    "impersonate",
    "joint",
    "least_covered",
    "leverage_points",
    "mimicry",
    "praise_rare",
    "push_features",
    "scale_features",
    "spoil_transitions",
    "teacher_mistake",
    "teacher_myopic",
    "teacher_skip",
    "teacher_stochastic",
]
