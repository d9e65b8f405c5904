"""How far a proposal goes before it settles."""

import jax.numpy as jnp
import numpy as np

from robust_rlhf_jax.rewards import fit_differences

from .worlds import THETA, K, N, draw_labels


def test_doubt_of_sure_pairs_leaves_a_fit_that_flips_brought_to_zero():
    """The surest tenth of the labels is flipped, which leaves the plain fit no direction: it takes more than the few
    refits that settle other proposals to leave it.
    """
    rng = np.random.default_rng(3)
    theta = 0.3 * THETA
    x = rng.normal(size=(N, K))
    labels = draw_labels(rng, x, theta)
    surest = np.argsort(-labels * (x @ theta))[: N // 10]
    labels[surest] *= -1
    x, labels = jnp.asarray(x, jnp.float32), jnp.asarray(labels, jnp.float32)
    plain, told = (np.asarray(fit_differences(x, labels, jnp.float32(eps)).theta) for eps in (0.0, 0.1))

    def cosine(found):
        return found @ theta / np.linalg.norm(found) / np.linalg.norm(theta)

    assert cosine(plain) < 0.5
    assert cosine(told) > 0.9
