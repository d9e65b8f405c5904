"""Flip the labels that say the most."""

from .base import corruption_count, largest, replace_labels, true_margins


def flip_confident(key, data, epsilon, mdp):
    """Flip the ⌊εN⌋ labels with the largest o·θ★ᵀx. Sees θ★, changes labels only; uses no randomness."""
    margins = data.labels * true_margins(data, mdp)
    return replace_labels(data, largest(margins, corruption_count(epsilon, data.n_pairs)), -data.labels)
