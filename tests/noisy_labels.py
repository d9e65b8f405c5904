"""Labels of which some are flipped, and SciPy's best of many starts, for losses that are not convex."""

import numpy as np
import scipy.optimize

RADIUS = 3.0


def sample(seed=0, n=120, flipped=0.15):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    labels = np.where(rng.logistic(size=n) < x @ [2.0, -1.0], 1.0, -1.0)
    return x, labels * np.where(rng.random(n) < flipped, -1.0, 1.0)


def lowest(value, starts=12):
    """SciPy's best of many starts within the ball of `RADIUS`."""
    ball = {"type": "ineq", "fun": lambda t: RADIUS**2 - t @ t}
    points = np.random.default_rng(1).normal(size=(starts, 2))
    ends = (scipy.optimize.minimize(value, p, method="SLSQP", constraints=ball, tol=1e-12) for p in points)
    return min(ends, key=lambda end: end.fun)
