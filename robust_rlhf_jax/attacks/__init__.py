"""Adversaries: one file each, one signature, `attack(key, data, epsilon, mdp) -> data`; `ATTACKS` by name."""

from .base import Attack, corruption_count, identifiable_theta
from .flip_confident import flip_confident
from .praise_rare import praise_rare
from .push_features import push_features
from .spoil_transitions import spoil_transitions

ATTACKS: dict[str, Attack] = {
    "flip_confident": flip_confident,
    "praise_rare": praise_rare,
    "push_features": push_features,
    "spoil_transitions": spoil_transitions,
}

__all__ = [
    "ATTACKS",
    "Attack",
    "corruption_count",
    "flip_confident",
    "identifiable_theta",
    "praise_rare",
    "push_features",
    "spoil_transitions",
]
