"""How far a proposal goes before it settles."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.rewards import fit_differences, plain_fit

from .worlds import THETA, K, N, draw_labels


@pytest.mark.slow
def test_doubt_of_sure_pairs_leaves_a_fit_that_flips_brought_to_zero():
    """The surest tenth of the labels is flipped, which leaves the plain fit no direction: it takes more than the few
    refits that settle other proposals to leave it. Of 40 draws 32 end near the truth.
    """
    theta = 0.3 * THETA

    def flipped(seed):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(N, K))
        labels = draw_labels(rng, x, theta)
        surest = np.argsort(-labels * (x @ theta))[: N // 10]
        labels[surest] *= -1
        return x, labels

    x, labels = (
        jnp.asarray(np.stack(part), jnp.float32) for part in zip(*map(flipped, range(12)), strict=True)
    )
    plain = np.asarray(jax.lax.map(lambda given: plain_fit(*given)[0], (x, labels)))
    told = np.asarray(jax.lax.map(lambda given: fit_differences(*given, jnp.float32(0.1)).theta, (x, labels)))

    def cosine(found):
        return found @ theta / np.linalg.norm(found, axis=1) / np.linalg.norm(theta)

    assert np.median(cosine(plain)) < 0.5
    assert np.sum(cosine(told) > 0.9) >= 11


@pytest.mark.slow
@pytest.mark.parametrize("k", [40, 140])
def test_the_plain_fit_is_that_of_the_robust_one_where_rare_levels_leave_the_prior_undecided(k):
    rng = np.random.default_rng(0)
    common = 1 / np.arange(1, k + 1) ** 1.3
    levels = np.eye(k, dtype=np.float32)[rng.choice(k, (2, 600), p=common / common.sum())]
    x = levels[0] - levels[1]
    labels = np.float32(np.where(rng.logistic(size=600) < x @ rng.normal(size=k), 1, -1))
    theta = np.asarray(fit_differences(x, labels, jnp.float32(0.0)).theta)
    np.testing.assert_allclose(plain_fit(x, labels)[0], theta, atol=2e-5 * np.abs(theta).max())
