"""What every estimator that knows the raters promises: symmetries, batches, one compilation, few and bad answers."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rated_labels import RADIUS, sample

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.raters.protocol import RaterEstimator
from robust_rlhf_jax.raters.registry import RATER_ESTIMATORS

names = pytest.mark.parametrize("name", RATER_ESTIMATORS)
K = 6


@pytest.fixture(scope="module")
def fits():
    """Compiled once for the module: name → (one data set, a batch), both f(x, labels, ε, raters)."""

    def compiled(name):
        call = lambda x, y, e, r: RATER_ESTIMATORS[name].estimate(x, y, e, r, K, radius=RADIUS)  # noqa: E731
        return jax.jit(call), jax.jit(jax.vmap(call))

    return {name: compiled(name) for name in RATER_ESTIMATORS}


def agree(found, expected, rows=slice(None), raters=slice(None), atol=1e-5):
    np.testing.assert_allclose(found.theta, expected.theta, atol=atol)
    np.testing.assert_allclose(found.weights, expected.weights[rows], atol=atol)
    np.testing.assert_allclose(found.suspicion, expected.suspicion[rows], atol=atol)
    if expected.reliability is not None:
        np.testing.assert_allclose(found.reliability, expected.reliability[raters], atol=atol)


@pytest.mark.slow
@names
def test_symmetries(name, fits, x64):
    """Pairs permuted or turned round and raters renamed: the same answer, in the new order."""
    one, (x, y, who) = fits[name][0], sample(2)
    fit = one(x, y, 0.1, who)
    rng = np.random.default_rng(3)
    turn, order, renamed = rng.choice([-1.0, 1.0], len(y)), rng.permutation(len(y)), rng.permutation(K)
    agree(one(x * turn[:, None], y * turn, 0.1, who), fit)
    agree(one(x[order], y[order], 0.1, who[order]), fit, rows=order)
    agree(one(x, y, 0.1, np.argsort(renamed)[who].astype(np.int32)), fit, raters=renamed)


@pytest.mark.slow
@names
def test_batch_loop_new_values_and_a_bad_lane(name, fits, x64, count_compilations):
    one, many = fits[name]
    x, y, who = (np.stack(part) for part in zip(*(sample(s) for s in range(3)), strict=True))
    epsilons = np.array([0.05, 0.1, 0.2])
    together = many(x, y, epsilons, who)
    for i in range(3):
        alone = one(x[i], y[i], epsilons[i], who[i])
        agree(jax.tree.map(lambda leaf, i=i: leaf[i], together), alone)
        assert alone.status == Status.CONVERGED
        assert ((alone.weights >= 0) & (alone.weights <= 1)).all()
    with count_compilations() as count:
        one(*sample(5)[:2], np.float64(0.3), who[0])
    assert count.compiled == count.traced == []
    broken = x.copy()
    broken[1, 7, 1] = np.nan
    found = many(broken, y, epsilons, who)
    assert found.status[1] == Status.NONFINITE
    for before, after in zip(jax.tree.leaves(together), jax.tree.leaves(found), strict=True):
        np.testing.assert_array_equal(before[::2], after[::2])


@pytest.mark.slow
@names
def test_separable_raters_and_raters_of_three_answers_have_finite_fits(name, fits):
    """Five raters with three answers each, the sixth with all others; no label contradicts a plane."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(150, 2)).astype(np.float32)
    y, who = np.sign(x[:, 0]).astype(np.float32), np.minimum(np.arange(150) // 3, K - 1).astype(np.int32)
    found = fits[name][0](x, y, 0.1, who)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(found))
    assert found.theta[0] > 2 * abs(found.theta[1])
    assert np.linalg.norm(found.theta) <= RADIUS * (1 + 1e-5)


@pytest.mark.slow
@names
@pytest.mark.parametrize("n_raters", [1, 2])
def test_few_raters(name, n_raters):
    """One rater, or two who contradict each other: numbers, and a reward where there is one."""
    x, y, _ = (np.float32(part) for part in sample(4, n_raters=2, each=75))
    who = (np.arange(150) % n_raters).astype(np.int32)
    y = y * np.where(who == 1, -1, 1).astype(np.float32)
    found = jax.jit(lambda: RATER_ESTIMATORS[name].estimate(x, y, 0.1, who, n_raters, radius=RADIUS))()
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(found))
    if n_raters == 1:
        assert found.theta[0] > 0.5


@pytest.mark.slow
@names
def test_raters_without_pairs_change_nothing(name, fits, x64):
    x, y, who = sample(2)
    found = RATER_ESTIMATORS[name].estimate(*map(jnp.asarray, (x, y)), 0.1, who, 4 * K, radius=RADIUS)
    np.testing.assert_allclose(found.theta, fits[name][0](x, y, 0.1, who).theta, atol=1e-5)


@pytest.mark.slow
@names
def test_single_and_double_precision_agree(name, fits, x64):
    x, y, who = sample(6)
    double, single = fits[name][0](x, y, 0.1, who), fits[name][0](np.float32(x), np.float32(y), 0.1, who)
    assert single.theta.dtype == jnp.float32
    np.testing.assert_allclose(single.theta, double.theta, atol=0.02)


@names
def test_each_takes_what_the_protocol_says(name):
    protocol = list(inspect.signature(RaterEstimator.__call__).parameters.values())[1:]
    taken = list(inspect.signature(RATER_ESTIMATORS[name].estimate).parameters.values())
    assert [(p.name, p.kind) for p in taken[:6]] == [(p.name, p.kind) for p in protocol]
    assert all(p.default is not inspect.Parameter.empty for p in taken[6:])


@names
def test_labels_other_than_signs_are_one_sentence(name):
    with pytest.raises(ValueError, match=r"every label must be \+1 or -1"):
        RATER_ESTIMATORS[name].estimate(np.eye(2), np.zeros(2), 0.1, np.zeros(2, np.int32), 1, radius=RADIUS)
