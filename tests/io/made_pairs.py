"""Pairs for the tests of `Pairs`."""

import numpy as np

from robust_rlhf_jax import Pairs

N, P = 120, 3


def made(seed=0, **fields):
    """Pairs of which a tenth are labelled against θ."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N, P))
    x *= np.sign(x @ [2.0, -1.0, 0.5])[:, None]
    x[:12] *= -1
    rejected = rng.normal(size=(N, P)).round(2)
    return Pairs(rejected + x, rejected, **fields)
