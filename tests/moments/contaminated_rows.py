"""Normal rows of which some are replaced, and what the independent filters of the tests share."""

import numpy as np

EPSILON = 0.1


# √(log 1/ε)·ε: what a stable set of normal rows allows, with constant one.
STABLE = EPSILON * np.sqrt(np.log(1 / EPSILON))


def contaminated(kind, n=1000, d=5, seed=0, epsilon=EPSILON):
    """(rows, which are clean): standard normal rows, ⌊εn⌋ of them replaced, in random places."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    bad = rng.choice(n, int(epsilon * n), replace=False)
    direction = np.linalg.qr(rng.normal(size=(d, d)))[0]
    if kind == "spike":  # a cloud as wide as the clean one, off by 10σ
        x[bad] += 10.0 * direction[0]
    elif kind == "point":
        x[bad] = 5.0 * direction[0]
    elif kind == "two_clusters":
        sides = np.where(np.arange(len(bad)) < len(bad) // 2, 8.0, 0.0)
        x[bad] = sides[:, None] * direction[0] + (8.0 - sides)[:, None] * direction[1]
        x[bad] += 0.1 * rng.normal(size=(len(bad), d))
    elif kind == "far":
        x[bad] = 1e4 * direction[0]
    return x, ~np.isin(np.arange(n), bad)


def above(scores, weights, mass):
    """The largest score t such that rows with score ≥ t weigh at least `mass`."""
    order = np.argsort(-scores)
    reached = np.flatnonzero(np.cumsum(weights[order]) >= mass)
    return scores[order][reached[0]] if len(reached) else -np.inf
