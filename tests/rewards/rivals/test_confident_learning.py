"""Confident learning's pruning, against cleanlab where it is installed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from likelihood.logistic_reference import slsqp

from robust_rlhf_jax._iterate import Status
from robust_rlhf_jax.rewards.rivals.confident_learning import (
    FOLDS,
    confident_learning,
    out_of_fold_confidence,
    prune_by_noise_rate,
)

prune = jax.jit(prune_by_noise_rate)
confidence_of = jax.jit(lambda x, labels: out_of_fold_confidence(x, labels, jnp.asarray(10.0), FOLDS))


def sample(seed=0, n=200, noise=0.3, flips=0.15):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    labels = np.where(x @ [2.0, -1.0] + noise * rng.logistic(size=n) > 0, 1.0, -1.0)
    flipped = rng.uniform(size=n) < flips
    return x, np.where(flipped, -labels, labels), flipped


@pytest.mark.parametrize("noise", [0.1, 1.0, 6.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_prunes_what_cleanlab_prunes(noise, seed, x64):
    """`find_label_issues(filter_by="prune_by_noise_rate")` with the same probabilities: the same pairs."""
    cleanlab_filter = pytest.importorskip("cleanlab.filter")
    x, labels, _ = sample(seed, noise=noise)
    confidence, status = confidence_of(x, labels)
    assert status == Status.CONVERGED
    given = np.arange(len(labels)) // FOLDS % 2 == 1
    chance = np.where(given, confidence, 1 - confidence)
    theirs = cleanlab_filter.find_label_issues(
        given.astype(int), np.stack([1 - chance, chance], axis=1), filter_by="prune_by_noise_rate", n_jobs=1
    )
    ours = np.asarray(prune(confidence, jnp.asarray(given)))
    assert theirs.sum() > 10
    np.testing.assert_array_equal(ours, theirs.astype(float))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_model_that_is_mostly_wrong_counts_a_pair_for_its_likelier_class(seed, x64):
    """With thresholds that sum to less than 1 a pair is confident of both classes; cleanlab takes the likelier."""
    cleanlab_filter = pytest.importorskip("cleanlab.filter")
    rng = np.random.default_rng(seed)
    given = rng.uniform(size=300) < 0.4
    confidence = rng.beta(2.0, 4.0, size=300)
    chance = np.where(given, confidence, 1 - confidence)
    theirs = cleanlab_filter.find_label_issues(
        given.astype(int), np.stack([1 - chance, chance], axis=1), filter_by="prune_by_noise_rate", n_jobs=1
    )
    np.testing.assert_array_equal(prune(jnp.asarray(confidence), jnp.asarray(given)), theirs.astype(float))


@pytest.mark.parametrize("own", [0.3, 0.45])
@pytest.mark.parametrize("count", [5, 8])
def test_a_class_that_is_wrong_throughout_keeps_as_many_as_cleanlab_keeps(count, own, x64):
    cleanlab_filter = pytest.importorskip("cleanlab.filter")
    given = np.arange(30) < count
    confidence = np.where(given, own, np.linspace(0.55, 0.95, 30)) - 1e-3 * np.arange(30)
    chance = np.where(given, confidence, 1 - confidence)
    theirs = cleanlab_filter.find_label_issues(
        given.astype(int), np.stack([1 - chance, chance], axis=1), filter_by="prune_by_noise_rate", n_jobs=1
    )
    np.testing.assert_array_equal(prune(jnp.asarray(confidence), jnp.asarray(given)), theirs.astype(float))


@pytest.mark.slow
def test_out_of_fold_probabilities_never_saw_their_pair(x64):
    """Each pair's probability is that of SciPy's fit to the other folds."""
    x, labels, _ = sample(2, n=60, noise=1.0)
    confidence, _ = out_of_fold_confidence(jnp.asarray(x), jnp.asarray(labels), jnp.asarray(10.0), 3)
    for fold in range(3):
        seen = np.arange(60) % 3 != fold
        theta = slsqp(x[seen], labels[seen], np.ones(seen.sum()), 10.0)
        expected = 1 / (1 + np.exp(-(labels * (x @ theta))[~seen]))
        np.testing.assert_allclose(confidence[~seen], expected, atol=1e-5)


@pytest.mark.slow
def test_the_rest_is_fitted_plainly(x64):
    """Most flipped labels go, few others do, and the fit is SciPy's to what stays."""
    x, labels, flipped = sample(3)
    fit = confident_learning(jnp.asarray(x), jnp.asarray(labels), 0.1, radius=10.0)
    kept = np.asarray(fit.weights) > 0
    assert (~kept)[flipped].mean() > 0.7
    assert (~kept)[~flipped].mean() < 0.1
    np.testing.assert_allclose(fit.theta, slsqp(x[kept], labels[kept], np.ones(kept.sum()), 10.0), atol=1e-4)
    assert fit.status == Status.CONVERGED


@pytest.mark.slow
@pytest.mark.parametrize("folds", [FOLDS, 4])
def test_every_second_block_of_folds_is_turned_to_class_1(folds, x64):
    x, labels, _ = sample(3)
    fit = confident_learning(jnp.asarray(x), jnp.asarray(labels), 0.1, radius=10.0, folds=folds)
    confidence, _ = out_of_fold_confidence(jnp.asarray(x), jnp.asarray(labels), jnp.asarray(10.0), folds)
    np.testing.assert_allclose(fit.suspicion, 1 - confidence, rtol=1e-9)
    blocks = np.zeros(200, bool)
    for start in range(folds, 200, 2 * folds):
        blocks[start : start + folds] = True
    np.testing.assert_array_equal(fit.weights, 1 - prune(confidence, jnp.asarray(blocks)))


def test_nothing_to_prune():
    """All labels as likely as each other or certain: no pair's own label is the less likely one."""
    given = jnp.asarray([True, False] * 4)
    np.testing.assert_array_equal(jax.jit(prune)(jnp.full(8, 0.5), given), 0.0)
    np.testing.assert_array_equal(jax.jit(prune)(jnp.ones(8), given), 0.0)


def test_options_are_given_by_name():
    with pytest.raises(TypeError):
        confident_learning(*map(jnp.asarray, sample()[:2]), 0.1, 10.0)
