"""The robust fit: plain on honest pairs to the last bit, right beside liars, and no direction lost."""

import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pytest
import scipy.optimize
import scipy.special
from slow_parameters import slow

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.rewards import plain_fit
from robust_rlhf_jax.rewards.slips import SHARES

from .worlds import (
    THETA,
    K,
    N,
    draw_labels,
    fitted,
    maximum_likelihood,
    normal_pairs,
    planted,
    rare_pairs,
    sparse_pairs,
    standard_errors,
)


def assert_plain(found, plain):
    """Maximum likelihood on all pairs, bit for bit."""
    np.testing.assert_array_equal(found.theta, plain.theta)
    np.testing.assert_array_equal(found.weights, 1.0)
    assert found.epsilon == 0
    assert found.interval[0] == 0
    assert not found.doubted.any()
    assert found.label_noise == 0
    np.testing.assert_array_equal(found.explanations.probability[1:], 0.0)
    assert found.status == Status.CONVERGED


def assert_right(found, x):
    """Within five standard errors of the truth."""
    errors = (np.asarray(found.theta, float) - THETA) / standard_errors(x)
    assert np.abs(errors).max() < 5


@pytest.mark.slow
@pytest.mark.parametrize("draw", [normal_pairs, rare_pairs, sparse_pairs])
def test_honest_pairs_give_the_plain_fit_exactly(draw):
    for seed in range(3):
        x, labels = draw(seed)
        plain = fitted(x, labels, 0.0)
        np.testing.assert_allclose(plain.theta, maximum_likelihood(x, labels), rtol=0.05, atol=0.02)
        assert_right(plain, x)
        np.testing.assert_array_equal(plain.interval, 0.0)
        for epsilon in (0.05, 0.1, 0.2, 0.3):
            found = fitted(x, labels, epsilon)
            assert_plain(found, plain)
            assert found.interval[1] <= epsilon + 1e-6
            assert found.rank == K


@pytest.mark.slow
def test_pairs_whose_sides_are_alike_do_not_shorten_the_reward():
    """However many: the typical length is that of pairs that differ."""
    rng = np.random.default_rng(0)
    honest = rng.normal(size=(360, 2))
    labels = np.where(rng.logistic(size=360) < honest @ [2.0, -2.0], 1.0, -1.0)
    lies = np.tile([[-4.0, 4.0]], (40, 1)) + 0.2 * rng.normal(size=(40, 2))
    x = np.vstack([lies, honest, np.zeros((440, 2))])
    found = fitted(x, np.concatenate([np.ones(40), labels, np.ones(440)]), 0.2)
    assert found.epsilon > 0.03
    assert np.linalg.norm(found.theta) > 1.5
    np.testing.assert_array_less(0.9, np.asarray(found.weights)[-440:])


def test_under_a_ceiling_of_0_nothing_is_looked_for():
    """Whatever contradicts the rest: maximum likelihood, nothing certain, nothing possible."""
    x, labels, _ = planted(*normal_pairs(0), 0.2, 3.0)
    found = fitted(x, labels, 0.0)
    np.testing.assert_allclose(found.theta, maximum_likelihood(x, labels), rtol=0.2, atol=0.05)
    np.testing.assert_array_equal(found.weights, 1.0)
    np.testing.assert_array_equal(found.undisputed, 1.0)
    np.testing.assert_array_equal(found.interval, 0.0)
    assert found.epsilon == 0.0
    assert not found.doubted.any()


def test_labels_other_than_signs_are_refused():
    x, labels = normal_pairs(0)
    with pytest.raises(ValueError, match="labels look like 0/1"):
        fitted(x, (labels + 1) / 2, 0.1)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.02, 0.08, 0.2])
def test_a_rare_decisive_feature_is_kept(share):
    """The example on which the filter of second moments removed all pairs that show the last feature."""
    for seed in range(3):
        x, labels = rare_pairs(seed, share=share)
        for epsilon in (0.05, 0.2):
            found = fitted(x, labels, epsilon)
            np.testing.assert_array_equal(found.weights, 1.0)
            assert found.rank == K
            assert abs(found.theta[5] - THETA[5]) < 5 * standard_errors(x)[5]


def test_pairs_that_say_nothing_are_kept():
    """Labels by a coin, and differences of one column only."""
    x, _ = normal_pairs(0)
    labels = np.random.default_rng(1).choice([-1.0, 1.0], N)
    found = fitted(x, labels, 0.2)
    assert_plain(found, fitted(x, labels, 0.0))
    # They say nothing against lies either.
    assert found.interval[1] > 0.15
    x[:, 1:] = 0.0
    labels = draw_labels(np.random.default_rng(2), x)
    found = fitted(x, labels, 0.2)
    assert_plain(found, fitted(x, labels, 0.0))
    assert found.rank == 1
    np.testing.assert_array_equal(found.theta[1:], 0.0)


@pytest.mark.parametrize(
    ("share", "length"),
    [(0.05, 1.0), slow(0.05, 3.0), slow(0.05, 20.0), slow(0.1, 3.0), (0.1, 20.0), (0.2, 3.0)],
)
def test_planted_pairs_go_and_the_truth_comes_back(share, length):
    for seed in range(3):
        x, labels = normal_pairs(seed)
        corrupted, wrong, bad = planted(x, labels, share, length)
        found = fitted(corrupted, wrong, share)
        kept = np.asarray(found.weights)
        assert kept[bad].mean() < 0.05
        assert kept[~bad].mean() > 0.975
        assert_right(found, x[~bad])
        np.testing.assert_allclose(found.epsilon, 1 - kept.mean(), atol=1e-5)
        low, high = np.asarray(found.interval)
        # What is certain is what remains after the corruption that honest choices seem to need.
        assert 0 <= low <= share + 0.02
        assert low <= found.epsilon <= high
        assert share <= high <= share + 0.02
        # Suspicion tells them apart.
        suspicion = np.asarray(found.suspicion)
        assert ((suspicion >= 0) & (suspicion <= 1)).all()
        assert suspicion[bad].mean() > 0.5 > 0.2 > suspicion[~bad].mean()


@pytest.mark.slow
@pytest.mark.parametrize("size", [1e6, 1e10, 1e30])
def test_one_absurd_cell_moves_nothing(size):
    """A slip of the unit where the label agrees with the rest: the row is shortened, and nobody is accused."""
    x, labels = normal_pairs(0)
    clean = fitted(x, labels, 0.0)
    for row, column in ((7, 2), (900, 0)):
        corrupted, same = x.copy(), labels.copy()
        corrupted[row, column], same[row] = size, np.sign(THETA[column])
        for epsilon in (0.0, 0.05, 0.2):
            found = fitted(corrupted, same, epsilon)
            assert np.isfinite(found.theta).all()
            assert found.status == Status.CONVERGED
            assert found.rank == K
            np.testing.assert_array_equal(found.weights, 1.0)
            shift = (np.asarray(found.theta) - np.asarray(clean.theta)) / standard_errors(x)
            assert np.abs(shift).max() < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("size", [1e3, 1e6, 1e30])
def test_one_absurd_cell_with_a_lie_in_a_decisive_feature_goes(size):
    """Maximum likelihood loses the whole feature to it."""
    for seed, column in ((0, 0), (1, 4), (2, 5)):
        x, labels = normal_pairs(seed)
        clean, errors = fitted(x, labels, 0.0), standard_errors(x)
        x[7, column], labels[7] = size, -np.sign(THETA[column])
        assert abs(fitted(x, labels, 0.0).theta[column]) < 0.1
        for epsilon in (0.01, 0.05, 0.2):
            found = fitted(x, labels, epsilon)
            assert found.weights[7] < 1e-3
            assert found.epsilon <= 0.011
            assert np.abs((np.asarray(found.theta) - np.asarray(clean.theta)) / errors).max() < 2


@pytest.mark.slow
@pytest.mark.parametrize("size", [1e3, 1e6, 1e10, 1e30])
def test_one_absurd_cell_with_a_lie_is_finite(size):
    """Where the label contradicts the rest, its own feature may suffer; the others do not."""
    x, labels = normal_pairs(0)
    clean = fitted(x, labels, 0.0)
    x[7, 2], labels[7] = size, -1.0
    errors = standard_errors(np.delete(x, 7, axis=0))
    for epsilon in (0.0, 0.05, 0.2):
        found = fitted(x, labels, epsilon)
        assert found.status == Status.CONVERGED
        assert found.rank == K
        shift = np.delete((np.asarray(found.theta) - np.asarray(clean.theta)) / errors, 2)
        assert np.abs(shift).max() < 1.5
        assert 0 < found.theta[2] + 0.01 < THETA[2] + 5 * errors[2]


def repeated_answers(seed, tasks=12, n=N, slips=0.04):
    """Nearly certain people answer the same few choices, and toss a coin in the share `slips` of their answers."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-2, 3, (tasks, K)).astype(float)[np.arange(n) % tasks]
    sure = 6 * x @ THETA / np.linalg.norm(THETA)
    chance = (1 - slips) * scipy.special.expit(sure) + slips / 2
    return x, np.where(rng.uniform(size=n) < chance, 1.0, -1.0), chance


def test_labels_that_look_like_slips_accuse_nobody():
    """Without slips two such fits left out 82 and 101 pairs, and were .07 nats a label worse than plain ones."""
    for seed in (6, 14):
        x, labels, chance = repeated_answers(seed)
        found, plain = (fitted(x, labels, epsilon, comparisons=np.arange(N) % 12) for epsilon in (0.2, 0.0))
        np.testing.assert_array_equal(found.weights, 1.0)
        assert found.epsilon == found.interval[0] == 0.0
        assert found.label_noise in SHARES
        losses = [
            scipy.special.rel_entr([chance, 1 - chance], [p, 1 - p]).sum(axis=0).mean()
            for p in (np.asarray(fit.probability(jnp.asarray(x, jnp.float32))) for fit in (found, plain))
        ]
        assert losses[0] < losses[1] - 0.01


def test_separable_labels_are_said():
    x, _ = normal_pairs(0)
    for epsilon in (0.0, 0.1):
        found = fitted(x, np.sign(x @ THETA), epsilon)
        assert found.status == Status.SEPARABLE
        assert np.isfinite(found.theta).all()
        theta = np.asarray(found.theta)
        assert theta @ THETA > 0.99 * np.linalg.norm(theta) * np.linalg.norm(THETA)


def test_labels_that_a_reward_explains_accuse_nobody():
    x, _ = normal_pairs(0, 2 * N)
    x = x[np.argsort(-np.abs(x @ THETA))[:N]]
    labels = np.sign(x @ THETA)
    plain, found = (fitted(x, labels, epsilon) for epsilon in (0.0, 0.2))
    np.testing.assert_array_equal(found.theta, plain.theta)
    np.testing.assert_array_equal(found.undisputed, 1.0)
    assert found.interval[0] == 0.0
    assert 1.92 / N < found.interval[1] < 2 * 1.92 / N  # labels that agree exclude flips but for so many


@pytest.mark.slow
def test_a_direction_that_only_left_out_pairs_show_is_kept_and_doubted():
    """The planted pairs alone show the last feature, mostly for it, and they lie about the others from both sides."""
    for seed in (1, 2):
        x, _ = normal_pairs(seed)
        x[:, 5] = 0.0
        labels = draw_labels(np.random.default_rng(seed), x)
        honest = fitted(x, labels, 0.1)
        assert honest.rank == K - 1
        assert not honest.doubted.any()
        bad, side = np.arange(N) < 100, np.where(np.arange(100) < 75, 1.0, -1.0)
        corrupted, wrong, _ = planted(x, labels, 0.1, 3.0)
        corrupted[bad] *= side[:, None]
        corrupted[:, 5], wrong[bad] = bad, side
        found = fitted(corrupted, wrong, 0.1)
        # The majority among them contradicts nobody once the minority is out; the pessimist counts on neither.
        assert np.asarray(found.weights)[bad & (wrong < 0)].max() < 1e-3
        assert np.asarray(found.undisputed)[bad].mean() < 0.05
        assert found.rank == K
        assert found.theta[5] > 0.5
        errors = standard_errors(x[~bad, :5], THETA[:5])
        assert np.abs((np.asarray(found.theta)[:5] - THETA[:5]) / errors).max() < 5
        rows = np.asarray(found.doubted)
        rows = rows[np.abs(rows).max(axis=1) > 0]
        assert len(rows) == 1
        np.testing.assert_allclose(np.abs(rows[0]) / np.linalg.norm(rows[0]), np.eye(K)[5], atol=0.05)


@pytest.mark.slow
def test_a_number_that_is_not_finite_is_said():
    x, labels = normal_pairs(0)
    x[3, 2] = np.nan
    assert fitted(x, labels, 0.1).status == Status.NONFINITE
    assert fitted(x, labels, 0.0).status == Status.NONFINITE


@pytest.mark.slow
def test_raters_with_tastes_of_their_own_are_not_liars():
    """Fifty raters whose θ differ: their labels hang together, and nobody is left out."""
    groups = np.arange(N) // 20
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x, _ = normal_pairs(seed)
        tastes = THETA + 0.7 * rng.normal(size=(N // 20, K))
        labels = np.where(
            rng.uniform(size=N) < scipy.special.expit(np.sum(x * tastes[groups], axis=1)), 1.0, -1.0
        )
        found = fitted(x, labels, 0.1, groups=groups)
        np.testing.assert_array_equal(found.weights, 1.0)
        np.testing.assert_array_equal(found.theta, fitted(x, labels, 0.0).theta)


@pytest.mark.slow
@pytest.mark.parametrize("times", [10, 50])
def test_grouped_copies_of_honest_pairs_are_left_alone(times):
    for seed in range(3):
        x, labels = normal_pairs(seed)
        few, wins = x[: N // times, :3], labels[: N // times]
        groups = np.arange(N) % len(few)
        found = fitted(few[groups], wins[groups], 0.2, groups=groups)
        np.testing.assert_array_equal(found.weights, 1.0)


@pytest.mark.slow
def test_raters_do_not_hide_planted_pairs():
    x, labels = normal_pairs(0)
    corrupted, wrong, bad = planted(x, labels, 0.1, 3.0)
    groups = np.random.default_rng(0).integers(0, 50, N)
    found = fitted(corrupted, wrong, 0.1, groups=groups)
    assert np.asarray(found.weights)[bad].mean() < 0.05
    assert_right(found, x[~bad])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"weights": np.ones(3)}, r"weights has shape \(3,\): give one for each of the 20 pairs"),
        ({"labels": np.ones(3)}, r"labels has shape \(3,\): give one for each of the 20 pairs"),
        ({"weights": -np.ones(20)}, "weights must be finite and not negative"),
        ({"weights": np.full(20, np.nan)}, "weights must be finite and not negative"),
    ],
)
def test_a_plain_fit_refuses_other_numbers_of_weights_and_labels(given, said):
    x = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(ValueError, match=said):
        plain_fit(x, **({"labels": np.ones(20)} | given))


@pytest.mark.parametrize("hold", [list, pa.array])
def test_a_plain_fit_takes_weights_that_are_no_arrays_of_numpy(hold):
    x, weights = np.random.default_rng(0).normal(size=(20, 2)), np.linspace(0, 1, 20)
    labels = np.where(np.arange(20) % 3, 1.0, -1.0)
    np.testing.assert_allclose(
        plain_fit(x, labels, hold(weights))[0], plain_fit(x, labels, weights)[0], rtol=1e-6
    )
