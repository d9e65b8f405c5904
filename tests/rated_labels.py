"""Pairs of a few raters, one of whom says the opposite of what the others mean."""

import numpy as np

RADIUS = 20.0
CONTRARY = 2


def sample(seed=0, n_raters=6, each=25, k=2):
    """(x [n, k], labels [n], raters [n]) in random order."""
    rng = np.random.default_rng(seed)
    who = rng.permutation(np.repeat(np.arange(n_raters), each))
    x = rng.normal(size=(len(who), k))
    labels = np.where(rng.logistic(size=len(who)) < x @ np.array([2.0, -1.0, 0.5])[:k], 1.0, -1.0)
    return x, labels * np.where(who == CONTRARY, -1.0, 1.0), who.astype(np.int32)
