"""R³M's profiled offsets against the joint problem, and how λ is set."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.special

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.likelihood.margin_fit import fit_margin_loss, margin_problem
from robust_rlhf_jax.likelihood.margin_losses import ClippedLogistic
from robust_rlhf_jax.rewards.rivals.r3m import CLIPPED, SETTLED, OffsetRounds, OffsetState, r3m


def sample(seed=0, n=60):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    labels = np.where(x @ [2.0, -1.0] + 0.3 * rng.logistic(size=n) > 0, 1.0, -1.0)
    labels[::10] *= -1
    return x, labels


@pytest.mark.slow
def test_profiled_equals_joint(x64):
    """θ and δ together, by bounded L-BFGS: the objective as the paper prints it, λ = .3."""
    x, labels = sample()
    rate, n = 0.3, len(x)

    def joint(point):
        theta, offsets = point[:2], point[2:]
        margins = labels * (x @ theta) + offsets
        slope = -scipy.special.expit(-margins)
        value = -scipy.special.log_expit(margins).sum() + rate * offsets.sum()
        return value, np.concatenate([(slope * labels) @ x, slope + rate])

    reference = scipy.optimize.minimize(
        joint,
        np.zeros(2 + n),
        jac=True,
        method="L-BFGS-B",
        bounds=[(None, None)] * 2 + [(0, None)] * n,
        options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 5000, "maxfun": 50000},
    )
    loss = ClippedLogistic(jnp.asarray(np.log((1 - rate) / rate)))
    fit = fit_margin_loss(margin_problem(loss, jnp.asarray(x), jnp.asarray(labels), 50.0))
    np.testing.assert_allclose(fit.theta, reference.x[:2], atol=1e-4)
    np.testing.assert_allclose(loss.offset(fit.margins), reference.x[2:], atol=1e-3)


@pytest.mark.slow
def test_as_many_offsets_as_pairs_may_be_corrupt(x64):
    """λ ends where δ > 0 for 2εn pairs, up to the rounds' tolerance; those are the least likely ones."""
    x, labels = sample(1)
    fit = jax.jit(lambda a, b, e: r3m(a, b, e, radius=10.0))(x, labels, 0.1)
    assert fit.status == Status.CONVERGED
    clipped = np.asarray(fit.weights) < 1 - 1e-2
    assert abs(clipped.sum() - CLIPPED * 0.1 * len(x)) <= 1
    margins = labels * (x @ fit.theta)
    assert margins[clipped].max() < margins[~clipped].min()
    assert (np.argsort(-np.asarray(fit.suspicion)) == np.argsort(margins)).all()
    # The offset of a clipped pair lifts it to the lowest margin that is not clipped, and its slope is the same there.
    lowest = margins[clipped] + np.asarray(fit.suspicion)[clipped] - np.logaddexp(0.0, -margins[clipped])
    np.testing.assert_allclose(lowest, lowest[0], rtol=1e-9)
    np.testing.assert_allclose(fit.suspicion[~clipped], np.logaddexp(0.0, -margins[~clipped]), atol=1e-2)
    ratio = scipy.special.expit(-lowest) / scipy.special.expit(-margins[clipped])
    np.testing.assert_allclose(fit.weights[clipped], ratio, rtol=1e-9)


@pytest.mark.parametrize(
    ("lowest", "moved", "ended"),
    [
        (-3.0, 0.99 * 4.0 * SETTLED, True),
        (-3.0, 1.01 * 4.0 * SETTLED, False),
        (0.0, 0.99 * SETTLED, True),
        (0.0, 1.01 * SETTLED, False),
        (-np.inf, np.inf, False),
        (-np.inf, 0.0, True),
    ],
)
def test_the_rounds_end_once_the_clipping_margin_moves_little(lowest, moved, ended):
    """Relative to 1 and its size; before the first round it is −∞ and has not moved."""
    state = OffsetState(None, jnp.float32(lowest), jnp.float32(moved))
    status = OffsetRounds(jnp.float32(0.2)).terminate(None, state)
    assert status == (Status.CONVERGED if ended else Status.RUNNING)


def test_options_are_given_by_name():
    with pytest.raises(TypeError):
        r3m(*map(jnp.asarray, sample()), 0.1, 10.0)
    rounds = OffsetRounds(jnp.float32(0.2))
    for call in (rounds.init, lambda problem, key: rounds.step(problem, None, key)):
        with pytest.raises(TypeError, match="positional argument"):
            call(None, None)
