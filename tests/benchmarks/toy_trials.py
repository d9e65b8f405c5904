"""A trial small enough for tests: normal differences of known θ."""

import numpy as np

THETA = np.array([1.5, -1.0, 0.5])


def toy_trial(n: int = 600, seed: int = 0):
    from pair_sets import Trial

    rng = np.random.default_rng(seed)
    options = rng.normal(size=(2 * n, 2, 3))
    x = options[:, 1] - options[:, 0]
    labels = np.where(rng.random(2 * n) < 1 / (1 + np.exp(-x @ THETA)), 1.0, -1.0)
    return Trial(x[:n], labels[:n], None, x[n:], labels[n:], options[:n].reshape(-1, 3), x[:n] != 0)
