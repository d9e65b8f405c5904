"""Attacks on labels alone do what they claim, against NumPy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from slow_parameters import slow

from robust_rlhf_jax import sample_preferences
from robust_rlhf_jax.lab.attacks import (
    affordable_shrinkage,
    impersonate,
    least_covered,
    teacher_mistake,
    teacher_myopic,
    teacher_skip,
    teacher_stochastic,
)

EPSILON, N, KEYS = 0.2, 200, 300


@pytest.fixture(scope="module")
def world(make_mdp):
    mdp = make_mdp(seed=1)
    return mdp, sample_preferences(jax.random.key(0), mdp, N)


def margins_of(mdp, data):
    x = np.asarray(data.features[:, 1] - data.features[:, 0], np.float64).reshape(data.n_pairs, -1)
    return x @ np.asarray(mdp.theta, np.float64).ravel()


def step_rewards(mdp, data):
    return np.einsum("njhp,hp->njh", np.asarray(data.features, np.float64), np.asarray(mdp.theta, np.float64))


def labels_over_keys(attack, mdp, data, **options):
    """[KEYS, N] labels, one row per key."""
    run = jax.jit(jax.vmap(lambda k: attack(k, data, EPSILON, mdp, **options).labels))
    return np.asarray(run(jax.random.split(jax.random.key(3), KEYS)))


def sigmoid(m):
    return 1 / (1 + np.exp(-m))


def assert_mean_is(values, expected):
    error = values.std(ddof=1) / np.sqrt(len(values))
    assert abs(values.mean() - expected) <= 5 * error


@pytest.mark.slow
def test_a_mistaken_teacher_prefers_the_worse(world):
    mdp, data = world
    labels, honest = np.asarray(data.labels), np.sign(margins_of(mdp, data))
    found = labels_over_keys(teacher_mistake, mdp, data)
    changed = found != labels
    assert (found[changed] == np.broadcast_to(-honest, found.shape)[changed]).all()
    assert_mean_is(changed.sum(axis=1), EPSILON * N * np.mean(labels == honest))


@pytest.mark.slow
def test_a_stochastic_teacher_tosses_a_nearly_fair_coin(world):
    mdp, data = world
    labels, margins = np.asarray(data.labels), margins_of(mdp, data)
    changed = labels_over_keys(teacher_stochastic, mdp, data, rationality=0.5) != labels
    assert_mean_is(changed.sum(axis=1), EPSILON * np.sum(sigmoid(-0.5 * labels * margins)))
    sure = labels_over_keys(teacher_stochastic, mdp, data, rationality=1e6)
    rewritten = sure != labels
    assert (sure[rewritten] == np.broadcast_to(np.sign(margins), sure.shape)[rewritten]).all()


@pytest.mark.parametrize("discount", [0.3, slow(1.0)])
def test_a_myopic_teacher_recalls_the_end(discount, world):
    mdp, data = world
    labels = np.asarray(data.labels)
    returns = step_rewards(mdp, data) @ discount ** np.arange(mdp.horizon - 1, -1, -1.0)
    recalled = np.sign(returns[:, 1] - returns[:, 0])
    changed = labels_over_keys(teacher_myopic, mdp, data, discount=discount) != labels
    np.testing.assert_array_equal(changed.any(axis=0), labels != recalled, err_msg="in the end all of them")
    assert_mean_is(changed.sum(axis=1), EPSILON * np.sum(labels != recalled))
    if discount == 1.0:
        np.testing.assert_array_equal(recalled, np.sign(margins_of(mdp, data)))


def test_a_teacher_skips_what_pays_little(world):
    mdp, data = world
    better = step_rewards(mdp, data).sum(axis=-1).max(axis=1)
    other = jax.jit(teacher_skip)(jax.random.key(1), data, EPSILON, mdp)
    rows = lambda d: np.concatenate(  # noqa: E731
        [np.asarray(f).reshape(N, -1) for f in (d.states, d.actions, d.features, d.labels)], axis=1
    )
    before, after = rows(data), rows(other)
    skipped = (before != after).any(axis=1)
    assert skipped.sum() == round(EPSILON * N)
    assert better[skipped].max() <= better[~skipped].min() + 1e-5
    answered = {row.tobytes() for row in before[~skipped]}
    copies = [row.tobytes() for row in after[skipped]]
    assert set(copies) <= answered
    assert len(set(copies)) > len(copies) / 2, "copies of many pairs, not of one"


@pytest.mark.parametrize("turned", [False, True])
def test_least_covered_lies_about_the_rarest_action(turned, make_mdp):
    """Where it matters most first, whatever the truth is."""
    mdp = make_mdp(seed=1)
    if turned:
        mdp = eqx.tree_at(lambda m: m.theta, mdp, -mdp.theta)
    behaviour = jnp.broadcast_to(jnp.array([0.6, 0.15, 0.25]), (mdp.horizon, mdp.n_states, mdp.n_actions))
    data = sample_preferences(jax.random.key(0), mdp, N, behaviour=(behaviour, behaviour))
    taken = (np.asarray(data.actions) == 1).sum(axis=-1)
    more = taken[:, 1] - taken[:, 0]
    rewards = np.asarray(mdp.rewards())
    visits = np.stack([np.bincount(s.ravel(), minlength=6) for s in np.moveaxis(data.states[..., :-1], 2, 0)])
    advantage = np.sum(visits * (rewards[..., 1] - rewards.mean(axis=-1)))
    truth = np.sign(more) * np.sign(advantage)
    labels = np.asarray(data.labels)
    for epsilon in (0.1, 0.45):
        other = np.asarray(jax.jit(least_covered)(jax.random.key(1), data, epsilon, mdp).labels)
        flipped = other != labels
        assert flipped.sum() == round(epsilon * N)
        assert (labels * truth >= 0)[flipped].all(), "no lie is turned into truth"
        left = ~flipped & (labels * truth > 0)
        assert not left.any() or abs(more[flipped]).min() >= abs(more[left]).max()


@pytest.fixture(scope="module")
def many_pairs(make_mdp):
    mdp = make_mdp(seed=1)
    return mdp, sample_preferences(jax.random.key(0), mdp, 20_000)


def cost(margins, c):
    return np.mean(abs(sigmoid(margins) - sigmoid((1 - c) * margins)))


@pytest.mark.parametrize("relative", [0.3, 1.0, 1.4, 3.0])
def test_impersonated_labels_are_those_of_the_other_reward(relative, many_pairs):
    """At `relative` times the price of no information: which c, and labels as (1−c)·θ★ draws them."""
    mdp, data = many_pairs
    margins = margins_of(mdp, data)
    epsilon = float(relative * np.mean(abs(sigmoid(margins) - 0.5)))
    c = float(jax.jit(affordable_shrinkage)(jnp.asarray(margins, jnp.float32), epsilon))
    if relative == 3.0:
        assert c == 2.0
    else:
        np.testing.assert_allclose(cost(margins, c), epsilon, rtol=1e-4)
    if relative == 1.0:
        np.testing.assert_allclose(c, 1.0, atol=1e-3)
    other = jax.jit(impersonate)(jax.random.key(1), data, epsilon, mdp)
    labels = np.asarray(other.labels, np.float64)
    assert np.sum(labels != data.labels) <= epsilon * 20_000
    chance = sigmoid((1 - c) * margins)
    residual = (labels + 1) / 2 - chance
    groups = np.digitize(margins, np.quantile(margins, np.linspace(0, 1, 9)[1:-1]))
    for group in range(8):
        rows = groups == group
        error = np.sqrt(np.sum(chance[rows] * (1 - chance[rows])))
        assert abs(residual[rows].sum()) <= 5 * error
    # Not by chance: the labels as they were do not pass for those of the other reward.
    before = np.sum(margins * ((np.asarray(data.labels) + 1) / 2 - chance))
    assert abs(before) > 10 * np.sqrt(np.sum(margins**2 * chance * (1 - chance)))
    after = np.sum(margins * residual)
    assert abs(after) <= 5 * np.sqrt(np.sum(margins**2 * chance * (1 - chance)))
