"""What every reward estimator promises: symmetries, batches, one compilation, and what clean pairs give."""

import inspect

import jax
import numpy as np
import pytest
import scipy.optimize
from slow_parameters import slow, slow_but_few

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.audit import audit, flag, suspicion_scores
from robust_rlhf_jax.audit.config import DEFAULT_EPSILON, AuditConfig
from robust_rlhf_jax.io import Pairs
from robust_rlhf_jax.lab.methods import methods
from robust_rlhf_jax.lab.rivals import RIVALS as PLANNED
from robust_rlhf_jax.lab.rivals import planner
from robust_rlhf_jax.rewards.protocol import RewardEstimate, RewardEstimator
from robust_rlhf_jax.rewards.registry import EMPHASIS, ESTIMATORS, REWARD_ESTIMATORS, Entry

RADIUS = 5.0
KEY = jax.random.key(0)
RIVALS = tuple(name for name, entry in ESTIMATORS.items() if entry.rival)
rivals = pytest.mark.parametrize("name", slow_but_few(RIVALS, 2))


@pytest.fixture(scope="module")
def fits():
    """Compiled once for the module: name → (one data set, a batch), both f(x, labels, ε)."""

    def compiled(name):
        call = lambda x, y, e: REWARD_ESTIMATORS[name](x, y, e, radius=RADIUS)  # noqa: E731
        return jax.jit(call), jax.jit(jax.vmap(call))

    return {name: compiled(name) for name in (*RIVALS, "maximum_likelihood")}


def batch(seed=0, lanes=3, n=90, d=3):
    """Differences in a plane of R³, a tenth of the labels of each lane flipped."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, size=(lanes, n, d - 1)) @ np.linalg.qr(rng.normal(size=(d, d)))[0][: d - 1]
    labels = np.where(x @ [1.5, -1.0, 0.5] + 0.5 * rng.logistic(size=(lanes, n)) > 0, 1.0, -1.0)
    labels[:, ::10] *= -1
    return x, labels


def agree(found: RewardEstimate, expected: RewardEstimate, atol=1e-5):
    np.testing.assert_allclose(found.theta, expected.theta, atol=atol)
    np.testing.assert_allclose(found.weights, expected.weights, atol=atol)
    np.testing.assert_allclose(found.suspicion, expected.suspicion, atol=atol)
    np.testing.assert_array_equal(found.status, expected.status)


def explained(fit: RewardEstimate, x, labels):
    """Whether θ has every pair right that it keeps: only the ball then gives it a length."""
    return (labels * (x @ np.asarray(fit.theta)) > 0)[np.asarray(fit.weights) > 0].all()


# rdpo is cdpo with another number in the same compiled program.
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in RIVALS if name != "rdpo"])
def test_batch_loop_new_values_and_a_bad_lane(name, fits, x64, count_compilations):
    one, many = fits[name]
    x, y = batch()
    epsilons = np.array([0.0, 0.1, 0.2])
    together = many(x, y, epsilons)
    for i in range(3):
        alone = one(x[i], y[i], epsilons[i])
        agree(jax.tree.map(lambda leaf, i=i: leaf[i], together), alone)
        assert alone.status == Status.CONVERGED or (
            alone.status == Status.SEPARABLE and explained(alone, x[i], y[i])
        )
        assert np.linalg.norm(alone.theta) <= RADIUS * (1 + 1e-9)
        assert ((alone.weights >= 0) & (alone.weights <= 1)).all()
        assert np.isfinite(alone.suspicion).all()
    with count_compilations() as count:
        one(*(part[0] for part in batch(1)), np.float64(0.33))
        many(*batch(1), epsilons + 0.01)
    assert count.compiled == count.traced == []

    corrupted = x.copy()
    corrupted[1, 41, 2] = np.nan
    found = many(corrupted, y, epsilons)
    assert found.status[1] == Status.NONFINITE
    for before, after in zip(jax.tree.leaves(together), jax.tree.leaves(found), strict=True):
        np.testing.assert_array_equal(before[::2], after[::2])


@rivals
def test_symmetries(name, fits, x64):
    """Turning pairs round changes nothing; permuted and rotated rows give the permuted and rotated answer."""
    one = fits[name][0]
    x, y = (part[0] for part in batch(2))
    fit = one(x, y, 0.1)
    rng = np.random.default_rng(3)
    turn = rng.choice([-1.0, 1.0], len(y))
    agree(one(x * turn[:, None], y * turn, 0.1), fit)
    rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    rotated = one(x @ rotation, y, 0.1)
    assert np.allclose(rotated.theta, fit.theta @ rotation, atol=1e-5) == ESTIMATORS[name].rotates
    if ESTIMATORS[name].rotates:
        np.testing.assert_allclose(rotated.suspicion, fit.suspicion, atol=1e-5)
    # Where folds go by position, whole blocks of them change places.
    period = ESTIMATORS[name].period
    order = (period * rng.permutation(len(y) // period)[:, None] + np.arange(period)).reshape(-1)
    permuted = one(x[order], y[order], 0.1)
    np.testing.assert_allclose(permuted.theta, fit.theta, atol=1e-5)
    np.testing.assert_allclose(permuted.suspicion, fit.suspicion[order], atol=1e-5)
    np.testing.assert_allclose(permuted.weights, fit.weights[order], atol=1e-5)


@rivals
def test_no_corruption_to_expect_is_maximum_likelihood(name, fits, x64):
    x, y = (part[0] for part in batch(4))
    plain, found = fits["maximum_likelihood"][0](x, y, 0.0), fits[name][0](x, y, 0.0)
    close = np.allclose(found.theta, plain.theta, atol=1e-5)
    assert close == ESTIMATORS[name].plain_at_zero
    if close:
        np.testing.assert_allclose(found.weights, 1.0)


@pytest.mark.parametrize("name", ["maximum_likelihood", *slow_but_few(RIVALS, 2)])
def test_suspicion_is_the_surprise_of_labels_where_the_table_says_so(name, fits, x64):
    x, y = (part[0] for part in batch(2))
    fit = fits[name][0](x, y, 0.1)
    surprise = np.logaddexp(0.0, -y * (x @ np.asarray(fit.theta)))
    assert np.allclose(fit.suspicion, surprise, rtol=1e-9) == ESTIMATORS[name].by_surprise


@pytest.mark.parametrize("name", ["cdpo", slow("rdpo")])
def test_losses_that_know_the_flips_have_their_papers_minimum(name, fits, x64):
    """Over the ball, by sequential quadratic programming: mixtures of ℓ(m) and ℓ(−m)."""
    x, y = (part[0] for part in batch(2))
    e, found = 0.2, fits[name][0](x, y, 0.2)

    def loss(theta):
        m = y * (x @ theta)
        here, there = np.logaddexp(0.0, -m), np.logaddexp(0.0, m)
        return np.mean((1 - e) * here + (e if name == "cdpo" else -e) * there)

    ball = {"type": "ineq", "fun": lambda t: RADIUS**2 - t @ t}
    options = {"ftol": 1e-14, "maxiter": 500}
    best = scipy.optimize.minimize(loss, np.zeros(3), method="SLSQP", constraints=ball, options=options)
    assert loss(np.asarray(found.theta)) <= best.fun + 1e-9
    np.testing.assert_allclose(found.weights, 1.0)


@pytest.mark.parametrize("name", REWARD_ESTIMATORS)
def test_every_estimator_takes_what_the_protocol_says_and_the_radius_by_name(name):
    protocol = list(inspect.signature(RewardEstimator.__call__).parameters.values())[1:]
    taken = list(inspect.signature(REWARD_ESTIMATORS[name]).parameters.values())
    assert [p.name for p in protocol] == ["x", "labels", "epsilon", "radius"]
    assert [(p.name, p.kind) for p in taken[:4]] == [(p.name, p.kind) for p in protocol]
    assert protocol[3].kind == inspect.Parameter.KEYWORD_ONLY
    assert all(p.default is not inspect.Parameter.empty for p in taken[4:])


def test_rivals_of_the_package_are_other_peoples():
    assert set(PLANNED) == set(RIVALS) >= {"r3m", "sever", "confident_learning"}


@rivals
def test_epsilon_plays_a_part_where_the_table_says_so(name, fits, x64):
    x, y = (part[0] for part in batch(2))
    moved = np.abs(fits[name][0](x, y, 0.2).theta - fits[name][0](x, y, 0.05).theta).max()
    assert (moved > 1e-6) == ESTIMATORS[name].uses_epsilon


@pytest.mark.slow
def test_a_new_entry_is_offered_everywhere(monkeypatch):
    """In the table alone, an estimator is audited, flagged with, planned with and in sweeps."""

    def newcomer(x, labels, epsilon, *, radius):
        theta = x[0] / jax.numpy.linalg.norm(x[0])
        return RewardEstimate(
            theta, jax.numpy.ones_like(labels), abs(x[:, 0]) + epsilon, Status.CONVERGED.array()
        )

    entry = Entry(newcomer, "newcomer", "#123456", "no estimate at all")
    monkeypatch.setitem(ESTIMATORS, "newcomer", entry)
    assert REWARD_ESTIMATORS["newcomer"] is newcomer
    assert "newcomer" in REWARD_ESTIMATORS
    assert len(REWARD_ESTIMATORS) == len(ESTIMATORS)

    x, y = (part[0].astype(np.float32) for part in batch(2))
    pairs, suspicion = Pairs.of_differences(x, y), abs(x[:, 0])
    np.testing.assert_allclose(suspicion_scores(pairs, 0.1, estimator="newcomer"), suspicion + 0.1, rtol=1e-6)
    flagged = flag(pairs, 0.1, estimator="newcomer")
    np.testing.assert_array_equal(np.flatnonzero(flagged), np.sort(np.argsort(-suspicion)[:9]))

    given = AuditConfig(estimator="newcomer").settled(1)
    assert given.epsilon == DEFAULT_EPSILON
    found = audit(KEY, pairs, **(given.fitting() | {"folds": 2}))
    np.testing.assert_array_equal(found.robust.status, Status.CONVERGED)
    with pytest.raises(ValueError, match="estimator='newcomer' needs epsilon: only 'fit_reward'"):
        audit(KEY, pairs, estimator="newcomer")

    method = methods()["newcomer"]
    assert method[1:] == ("newcomer", "#123456", False)
    solution = jax.eval_shape(lambda: method.run(KEY, pairs, 0.1))
    assert solution.theta.shape == jax.eval_shape(lambda: planner("newcomer")(KEY, pairs, 0.1)).theta.shape


@pytest.mark.slow
def test_trimming_and_the_filter_give_up_what_epsilon_says(x64):
    """Alone, trimming leaves out εn pairs; plain maximum likelihood none, whatever its start."""
    x, y = (part[0] for part in batch(2))
    weights = {
        name: REWARD_ESTIMATORS[name](x, y, 0.1, radius=RADIUS).weights
        for name in ("maximum_likelihood", "trimmed")
    }
    np.testing.assert_array_equal(weights["maximum_likelihood"], 1.0)
    np.testing.assert_allclose(np.sum(weights["trimmed"]), 0.9 * len(y), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("lies", [True, False])
def test_removed_pairs_are_more_suspicious_only_if_their_labels_are(lies, x64):
    """Fifty pairs that lie far out, whose labels are the opposite of the truth or drawn like the others'."""
    rng = np.random.default_rng(6)
    x = rng.normal(size=(1000, 2))
    x[:50] += [0.0, 12.0]
    labels = np.where(1.5 * x[:, 0] + rng.logistic(size=1000) > 0, 1.0, -1.0)
    labels[:50] = np.where(lies, -np.sign(x[:50, 0]), labels[:50])
    fit = jax.jit(lambda: REWARD_ESTIMATORS["filtered"](x, labels, 0.05, radius=RADIUS))()
    surprise = np.logaddexp(0.0, -labels * (x @ np.asarray(fit.theta)))
    # Of some the filter takes only a part.
    np.testing.assert_allclose(fit.suspicion[:50] / surprise[:50], EMPHASIS if lies else 1.0, rtol=0.1)
    assert np.mean(np.isclose(fit.suspicion[50:] / surprise[50:], 1.0)) > 0.9


@rivals
def test_flipped_labels_are_the_most_suspicious(name, fits, x64):
    x, y = (part[0] for part in batch(5))
    suspicion = np.asarray(fits[name][0](x, y, 0.1).suspicion)
    flipped = np.arange(len(y)) % 10 == 0
    # The chance that a flipped pair outranks a clean one.
    assert (suspicion[flipped][:, None] > suspicion[~flipped]).mean() > 0.8
