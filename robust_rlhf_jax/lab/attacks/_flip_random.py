"""Flip labels blindly."""

from .base import random_pairs, replace_labels


def flip_random(key, data, epsilon, mdp):
    """Flip ⌊εN⌋ random labels: what careless raters do (Angluin & Laird 1988). Sees nothing, changes labels only."""
    return replace_labels(data, random_pairs(key, epsilon, data.n_pairs), -data.labels)
