"""What is concluded from judged explanations."""

import types

import jax.numpy as jnp
import numpy as np
import scipy.optimize
import scipy.special

from robust_rlhf_jax.rewards import conclusion


def test_theta_is_the_reward_that_is_nearest_to_what_is_believed():
    """Believed at 4 to 1, a reward is not outweighed by a surer one; at 1 to 4 it is not the answer."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(500, 3))
    t = np.array([[0.0, 0.0, 0.0], [1.0, -1.0, 0.5], [-9.0, 9.0, 4.0]])
    for belief in ([0.0, 0.8, 0.2], [0.0, 0.2, 0.8]):
        chance = belief @ scipy.special.expit(t @ rows.T)
        mixed = np.concatenate([[belief], np.diag(np.asarray(belief) > 0).astype(float)])
        judged = types.SimpleNamespace(t=jnp.asarray(t), margins=jnp.asarray(t @ rows.T))
        found = conclusion._nearest(jnp.asarray(mixed), judged, jnp.asarray(chance), jnp.ones(500))

        def loss(given, chance=chance):
            margins = rows @ given
            return -np.mean(scipy.special.log_expit(margins) - (1 - chance) * margins)

        nearest = min(
            scipy.optimize.minimize_scalar(
                lambda k, w=w: loss(k * (w @ t)), bounds=(0, 2), method="bounded"
            ).fun
            for w in mixed
            if w.any()
        )
        np.testing.assert_allclose(loss(np.asarray(found)), nearest, atol=1e-5)
        agree = np.sign(rows @ np.asarray(found)) == np.sign(rows @ t[int(np.argmax(belief))])
        assert agree.mean() > 0.9
