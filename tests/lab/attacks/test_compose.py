"""Attacks that share one budget."""

import jax
import numpy as np
import pytest

from robust_rlhf_jax import changed_pairs, sample_preferences
from robust_rlhf_jax.lab.attacks import ATTACKS, compose, corruption_count, flip_random, scale_features


@pytest.fixture(scope="module")
def world(make_mdp):
    mdp = make_mdp()
    return mdp, sample_preferences(jax.random.key(0), mdp, 100)


def recorder(counts):
    def attack(key, data, epsilon, mdp):
        counts.append(int(corruption_count(epsilon, data.n_pairs)))
        return data

    return attack


@pytest.mark.parametrize("shares", [None, (0.5, 0.3, 0.2), (0.0, 1.0, 0.0)])
def test_shares_sum_to_the_budget(shares, world):
    mdp, data = world
    for total in (0, 1, 2, 7, 29, 33, 49):
        counts = []
        compose(*[recorder(counts)] * 3, shares=shares)(jax.random.key(0), data, total / 100, mdp)
        assert sum(counts) == total
        wanted = np.array([1 / 3] * 3 if shares is None else shares) * total
        assert (abs(np.array(counts) - wanted) <= 1).all()


def test_the_union_stays_within_the_budget(world):
    """Flips alone would be undone where two of them meet; features and labels overlap but never exceed."""
    mdp, data = world
    both = jax.jit(compose(flip_random, scale_features, shares=(0.75, 0.25)))
    for count in (1, 10, 29, 49):
        changed = np.sum(changed_pairs(data, both(jax.random.key(count), data, count / 100, mdp)))
        assert count // 2 <= changed <= count


def test_joint_corrupts_labels_features_and_transitions(world):
    mdp, data = world
    other = jax.jit(ATTACKS["joint"])(jax.random.key(0), data, 0.3, mdp)
    moved = np.asarray((other.states != data.states).any(axis=(1, 2)))
    replaced = np.asarray((other.features != data.features).any(axis=(1, 2, 3)))
    flipped = np.asarray(other.labels != data.labels)
    assert moved.sum() == 10
    assert (replaced & ~moved).sum() in range(5, 11)
    assert (flipped & ~replaced).sum() in range(5, 11)


@pytest.mark.parametrize(
    ("attacks", "shares", "message"),
    [
        ((), None, "0 attacks and 0 shares"),
        ((flip_random,), (0.5, 0.5), "1 attacks and 2 shares"),
        ((flip_random, flip_random), (0.5, 0.6), "sum to 1"),
        ((flip_random, flip_random), (1.5, -0.5), "non-negative"),
    ],
)
def test_bad_shares_are_refused(attacks, shares, message):
    with pytest.raises(ValueError, match=message):
        compose(*attacks, shares=shares)


def test_names_of_attacks_are_no_attacks():
    with pytest.raises(ValueError, match=r"^'flip_random' is no attack: give functions, such as"):
        compose("flip_random")


def test_attacks_that_do_not_look_at_the_mdp_need_none(world):
    _, data = world
    counts = []
    compose(recorder(counts), recorder(counts))(jax.random.key(0), data, 0.1, None)
    assert sum(counts) == 10
    with pytest.raises(ValueError, match=r"^mdp is of the type NoneType: give the LinearMDP"):
        compose(recorder(counts), flip_random)(jax.random.key(0), data, 0.1, None)


@pytest.mark.parametrize(
    ("result", "made"), [(lambda data: None, "NoneType"), (lambda data: data.take([0, 1]), "2 pairs")]
)
def test_an_attack_that_returns_other_data_is_named(result, made, world):
    mdp, data = world

    def mine(key, data, epsilon, mdp):
        return result(data)

    with pytest.raises(ValueError, match=f"^the attack mine made {made} of 100 pairs: return PreferenceData"):
        compose(mine, recorder([]))(jax.random.key(0), data, 0.1, mdp)
