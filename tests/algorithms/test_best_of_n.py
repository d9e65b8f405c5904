"""`best_of_n`: Gibbs' closed form, the worst case against a search, no harm on honest pairs, careful beside lies."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import scipy.special

from robust_rlhf_jax import Pairs, fit_reward
from robust_rlhf_jax.algorithms import best_of_n, fit_reranker
from robust_rlhf_jax.algorithms._best_of_n import Reranker, _checked, _of_one_set
from robust_rlhf_jax.algorithms.possible_rewards import PossibleRewards
from robust_rlhf_jax.kernels.lapack import cholesky
from robust_rlhf_jax.lab.pair_attacks import PAIR_ATTACKS, AttackedPairs
from robust_rlhf_jax.likelihood.confidence import ellipsoid

from .robust_policy_worlds import fit_of

THETA = np.array([2.0, -1.0, 0.5, 0.0])


def honest(n=1000, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4)).astype(np.float32)
    return x, np.where(rng.logistic(size=n) < x @ THETA, 1.0, -1.0)


def sets(m=200, n=8, seed=1):
    return np.random.default_rng(seed).normal(size=(m, n, 4)).astype(np.float32)


def known(theta, information, believed, width=1.645):
    """Possible rewards about θ, in units of 1."""
    centre = jnp.asarray(theta, jnp.float32)
    radius = 3.0 * jnp.linalg.norm(centre) + 1.0
    shape = jnp.asarray(information, jnp.float32)
    return PossibleRewards(
        ellipsoid(shape, centre, jnp.float32(width), radius),
        jnp.ones(4),
        cholesky(shape + 1e-6 * jnp.eye(4)),
        believed,
    )


def of_one_set(phi, possible, theta, log_ref=None, hiding=False, temperature=0.0):
    log_ref = jnp.zeros(len(phi)) if log_ref is None else log_ref
    fitted = fit_of(jnp.ones(4), theta=jnp.float32(theta))
    reranker = Reranker(fitted, possible, jnp.asarray(hiding), jnp.asarray(True))
    return _of_one_set(reranker, jnp.asarray(phi), log_ref, jnp.float32(temperature))


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [None, 0.0])
@pytest.mark.parametrize("shown", [4, 3])
def test_on_honest_pairs_it_is_best_of_n(epsilon, shown):
    """Told nothing or ε = 0, whatever the pairs leave open: here, the last feature."""
    x, labels = honest()
    x[:, shown:] = 0.0
    data = Pairs.of_differences(x, labels)
    choice = best_of_n(data, sets(), epsilon)
    plain = np.asarray(fit_reward(data, 0.0).reward(sets())).argmax(axis=-1)
    assert not np.any(np.asarray(choice.pessimistic))
    np.testing.assert_array_equal(choice.index, plain)


@pytest.mark.slow
def test_told_that_pairs_may_be_corrupt_it_loses_little_where_honest_ones_are_sufficient():
    x, labels = honest()
    choice = best_of_n(Pairs.of_differences(x, labels), sets(), 0.1)
    true = sets() @ THETA
    lost = true.max(axis=1) - np.take_along_axis(true, np.asarray(choice.index)[:, None], 1)[:, 0]
    assert lost.mean() < 0.05 * np.mean(true.max(axis=1) - true.mean(axis=1))


@pytest.mark.slow
def test_a_direction_that_many_honest_pairs_show_is_not_doubted():
    """Planted rows, disputed one and all, hold most of the information along their own direction by their length."""
    rng = np.random.default_rng(0)
    theta = rng.normal(size=30)
    theta *= 2.0 / np.linalg.norm(theta)
    options = rng.normal(size=(600, 30))
    x = np.float32(options[:300] - options[300:])
    labels = np.where(rng.logistic(size=300) < x @ theta, 1.0, -1.0).astype(np.float32)
    attacked = PAIR_ATTACKS["leverage"](rng, AttackedPairs(x, labels, options), 0.1, theta)
    planted = np.any(attacked.x != x, axis=1)
    reranker = fit_reranker(Pairs.of_differences(np.float32(attacked.x), attacked.labels), 0.1)
    assert not np.any(np.asarray(reranker.reward.undisputed)[planted] > 0.5)
    candidates = rng.normal(size=(200, 16, 30))
    true = candidates @ theta
    chosen = np.asarray(reranker.choose(candidates).index)
    gain = np.take_along_axis(true, chosen[:, None], 1)[:, 0] - true.mean(axis=1)
    assert gain.mean() > 0.9 * np.mean(true.max(axis=1) - true.mean(axis=1))


@pytest.mark.slow
def test_the_probabilities_maximise_score_less_divergence():
    """Gibbs' closed form, and better than 2,000 other distributions."""
    rng = np.random.default_rng(0)
    phi, log_ref = sets(1)[0], jnp.asarray(rng.normal(size=8), jnp.float32)
    possible = known(THETA, 1e6 * np.eye(4), jnp.asarray(THETA, jnp.float32)[None])
    _, p, promised, _, careful = of_one_set(phi, possible, THETA, log_ref, temperature=0.7)
    assert not careful
    ref = scipy.special.softmax(np.asarray(log_ref, float))
    np.testing.assert_allclose(p, scipy.special.softmax(np.log(ref) + phi @ THETA / 0.7), rtol=1e-4)

    def value(q):
        return q @ np.asarray(promised, float) - 0.7 * np.sum(scipy.special.rel_entr(q, ref))

    assert value(np.asarray(p, float)) >= max(value(q) for q in rng.dirichlet(np.ones(8), 2000)) - 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("hiding", [False, True])
def test_the_guaranteed_gain_is_the_worst_case(hiding):
    """Of 20,000 rewards on the ellipsoid and the believed ones none gives a candidate less, one hardly more."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4)) + 3 * np.eye(4)
    information, other = 5.0 * root @ root.T, np.array([1.0, -1.0, 0.0, 0.6])
    possible = known(THETA, information, jnp.asarray([THETA, other], jnp.float32))
    phi = sets(1)[0]
    _, p, promised, guaranteed, careful = of_one_set(phi, possible, THETA, hiding=hiding)
    ahead = phi - phi.mean(axis=0)
    directions = rng.normal(size=(20_000, 4))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    possible_thetas = THETA + 1.645 * np.linalg.solve(np.linalg.cholesky(information).T, directions.T).T
    worst = np.minimum((possible_thetas @ ahead.T).min(axis=0), other @ ahead.T)
    np.testing.assert_allclose(promised, ahead @ THETA, atol=1e-4)
    np.testing.assert_allclose(guaranteed, worst, atol=0.02)
    if careful:
        assert int(np.argmax(p)) == int(np.argmax(worst))


@pytest.mark.slow
def test_it_is_careful_where_two_rewards_are_believed():
    """The second reward turns the first feature round: what both like is chosen."""
    believed = jnp.asarray([[2.0, 1.0, 0.0, 0.0], [-2.0, 1.0, 0.0, 0.0]], jnp.float32)
    phi = np.array([[3.0, 0.0, 0, 0], [0.0, 2.0, 0, 0], [-3.0, 0.0, 0, 0], [0.0, -2.0, 0, 0]], np.float32)
    index, _, promised, _, careful = of_one_set(
        phi, known([2.0, 1.0, 0.0, 0.0], 1e4 * np.eye(4), believed), [2.0, 1.0, 0, 0]
    )
    assert (int(index), int(np.argmax(promised)), bool(careful)) == (1, 0, True)


@pytest.mark.slow
def test_candidates_far_along_what_only_liars_show_are_not_chosen():
    """A tenth of the pairs is planted: a feature that nobody else has, said to be good. It is worth nothing."""
    x, labels = honest()
    x[:, 3] = 0.0
    x[:100] = np.array([0.0, 0.0, 0.0, 3.0])
    labels[:100] = 1.0
    candidates = sets()
    candidates[:, 0] = [-1.0, 1.0, 0.0, 8.0]
    told = best_of_n(Pairs.of_differences(x, labels), candidates, 0.15)
    plain = np.asarray(fit_reward(Pairs.of_differences(x, labels), 0.0).reward(candidates)).argmax(axis=-1)
    assert np.mean(plain == 0) > 0.9
    assert np.mean(np.asarray(told.index) == 0) < 0.1


@pytest.mark.slow
def test_order_origin_and_batches_do_not_matter():
    x, labels = honest()
    data, candidates, order = (
        Pairs.of_differences(x, labels),
        sets(6),
        np.random.default_rng(2).permutation(8),
    )
    reference = np.random.default_rng(3).normal(size=(6, 8)).astype(np.float32)
    first = best_of_n(data, candidates, 0.1, reference=reference, temperature=0.5)
    turned = best_of_n(data, candidates[:, order] + 2.0, 0.1, reference=reference[:, order], temperature=0.5)
    np.testing.assert_allclose(turned.probability, first.probability[:, order], atol=1e-4)
    deep = best_of_n(
        data, candidates.reshape(2, 3, 8, 4), 0.1, reference=reference.reshape(2, 3, 8), temperature=0.5
    )
    np.testing.assert_allclose(deep.probability.reshape(6, 8), first.probability, atol=1e-6)
    one = best_of_n(data, candidates[4], 0.1, reference=reference[4], temperature=0.5)
    np.testing.assert_allclose(one.probability, first.probability[4], atol=1e-5)


@pytest.mark.slow
def test_a_candidate_of_no_likelihood_is_not_chosen():
    x, labels = honest()
    reference = np.zeros((200, 8), np.float32)
    reference[:, :7] = -np.inf
    found = best_of_n(Pairs.of_differences(x, labels), sets(), reference=reference)
    np.testing.assert_array_equal(found.index, 7)


@pytest.mark.slow
def test_what_is_new_does_not_compile_what_is_old(count_compilations):
    """A new share or temperature compiles nothing; a new number of candidates does not fit again."""
    x, labels = honest()
    data, candidates = Pairs.of_differences(x, labels), sets(6)
    best_of_n(data, candidates, 0.1, temperature=0.5)
    with count_compilations() as count:
        best_of_n(data, candidates, 0.2, temperature=0.7)
    assert not {"_fit", "_choose"} & set(count.traced)
    reranker = fit_reranker(data, 0.1)
    with count_compilations() as count:
        few = reranker.choose(candidates[:, :5])
    assert "_choose" in count.traced
    assert "_fit" not in count.traced
    np.testing.assert_array_equal(few.index, best_of_n(data, candidates[:, :5], 0.1).index)


@pytest.mark.slow
@pytest.mark.parametrize("reference", [None, "padded"])
@pytest.mark.parametrize("hold", [np.asarray, np.ndarray.tolist, lambda sets: sets.round().astype(np.int64)])
def test_an_offset_that_all_candidates_share_is_subtracted_before_it_rounds_them(hold, reference):
    """Seconds since 1970, which float32 knows to two minutes; padding of no likelihood lies at 0."""
    x, labels = honest()
    reranker = fit_reranker(Pairs.of_differences(x / 60, labels))  # θ per second
    near = (60 * sets().astype(np.float64)).round()
    far = near + 1.7e9
    log_ref = np.zeros(near.shape[:-1])
    if reference:
        far[:, :2], log_ref[:, :2] = 0.0, -np.inf
    found, plain = (reranker.choose(phi, reference=log_ref) for phi in (hold(far), np.float32(near)))
    np.testing.assert_array_equal(found.index, plain.index)
    likely = np.isfinite(log_ref)
    np.testing.assert_allclose(found.promised[likely], plain.promised[likely], atol=1e-2)


def test_candidates_that_float32_holds_stay_as_they_are():
    given = np.float32(sets(3)) + np.float32(5.0)
    for phi in (given, jnp.asarray(given)):
        np.testing.assert_array_equal(_checked(phi, None, 0.0, jnp.zeros(4))[0], given)
    traced = jax.jit(lambda phi: _checked(phi, None, 0.0, jnp.zeros(4))[0])(given)
    np.testing.assert_array_equal(traced, given)
    listed = jax.jit(lambda phi: _checked([phi, phi], None, 0.0, jnp.zeros(4))[0])(given[0])
    np.testing.assert_array_equal(listed, [given[0], given[0]])


@pytest.mark.slow
@pytest.mark.parametrize("unit", [1e-30, 1e-20, 1e20, 1e30])
def test_gains_are_guaranteed_in_any_unit(unit):
    """The last feature is what fifteen in a hundred liars show alone: careful choices, in units of 1 and others."""
    x, labels = honest()
    x[:, 3] = 0.0
    x[:100] = np.array([0.0, 0.0, 0.0, 3.0])
    labels[:100] = 1.0
    candidates = sets().astype(np.float64)
    candidates[:, 0] = [-1.0, 1.0, 0.0, 8.0]
    scale = np.array([unit, 1.0, unit, unit])
    plain, other = (
        best_of_n(Pairs.of_differences(x * by, labels), candidates * by, 0.15) for by in (np.ones(4), scale)
    )
    assert np.any(np.asarray(plain.pessimistic))
    np.testing.assert_array_equal(other.pessimistic, plain.pessimistic)
    np.testing.assert_array_equal(other.index, plain.index)
    np.testing.assert_allclose(other.guaranteed, plain.guaranteed, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"candidates": np.zeros((3, 8, 5))}, "sets of n options with the 4 features"),
        ({"candidates": np.full((3, 8, 4), np.nan)}, "NaN or infinite"),
        ({"reference": np.zeros((3, 7))}, "for each candidate"),
        ({"reference": np.full((3, 8), -np.inf)}, "no candidate is likely"),
        ({"temperature": -1.0}, "must be a number of at least 0"),
        ({"temperature": np.nan}, "must be a number of at least 0"),
        ({"temperature": np.ones(3)}, "one number for all sets"),
        ({"candidates": np.zeros((0, 8, 4))}, "no set of options"),
        ({"candidates": [np.zeros((2, 4)).tolist(), np.zeros((3, 4)).tolist()]}, "sets of different sizes"),
        ({"epsilon": 0.7}, "epsilon"),
    ],
)
def test_bad_input_is_named(changes, message):
    given = {"candidates": sets(3), "epsilon": 0.1} | changes
    x, labels = honest(50)
    with pytest.raises(ValueError, match=message):
        best_of_n(Pairs.of_differences(x, labels), **given)


@pytest.mark.slow
def test_a_constant_of_the_reference_changes_nothing():
    x, labels = honest(200)
    reranker = fit_reranker(Pairs.of_differences(x, labels), 0)
    reference = np.random.default_rng(0).normal(size=(5, 8)) * 3
    found = [
        reranker.choose(sets(5), reference=reference + more, temperature=0.7).probability
        for more in (0.0, -1e5, 1e6)
    ]
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], atol=1e-5)


@pytest.mark.slow
def test_a_frame_of_candidates_is_taken_by_its_names():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    labels = np.where(rng.logistic(size=200) < x @ [3.0, -0.2], 1, -1)
    pairs = Pairs.of_differences(x, labels, names=("price", "time"))
    frame = pd.DataFrame({"time": [9.0, -1.0, 0.0], "price": [0.0, 1.0, 0.5]})
    assert (
        int(best_of_n(pairs, frame, 0.0).index)
        == int(best_of_n(pairs, frame[["price", "time"]], 0.0).index)
        == 1
    )
    assert int(fit_reranker(pairs, 0.0).choose(frame).index) == 1
    with pytest.raises(ValueError, match="has no column 'price'"):
        fit_reranker(pairs, 0.0).choose(frame.rename(columns={"price": "cost"}))


@pytest.mark.parametrize(
    ("names", "shown"), [((), "2 features"), (("price", "time"), "2 features (price, time)")]
)
def test_a_reranker_shows_its_features_and_no_arrays(names, shown):
    fitted = fit_of(jnp.ones(3), theta=jnp.ones(2))
    assert repr(Reranker(fitted, None, None, None, names)) == f"Reranker(rewards of {shown})"
