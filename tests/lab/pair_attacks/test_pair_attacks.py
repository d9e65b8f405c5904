"""Every attack on labelled differences: its budget, its seed, and what some of them are meant to do."""

import jax.numpy as jnp
import numpy as np
import pytest

from robust_rlhf_jax.lab.pair_attacks import PAIR_ATTACKS, AttackedPairs, by_raters
from robust_rlhf_jax.rewards import plain_fit

N, K = 1_000, 4
THETA = np.array([2.0, -1.0, 0.5, 1.0])


@pytest.fixture(scope="module")
def clean():
    rng = np.random.default_rng(0)
    options = rng.normal(size=(2 * N, K))
    x = options[::2] - options[1::2]
    labels = np.where(rng.logistic(size=N) < x @ THETA, 1.0, -1.0)
    return AttackedPairs(x, labels, options, np.repeat(np.arange(N // 20), 20))


def attacked(name, clean, epsilon=0.1, seed=0):
    return PAIR_ATTACKS[name](np.random.default_rng(seed), clean, epsilon, THETA)


def plain(pairs):
    return np.asarray(plain_fit(jnp.float32(pairs.x), jnp.float32(pairs.labels))[0], float)


@pytest.mark.parametrize("epsilon", [0.05, 0.1, 0.2])
@pytest.mark.parametrize("name", PAIR_ATTACKS)
def test_an_attack_keeps_to_its_budget(name, epsilon, clean):
    before = [part.copy() for part in clean]
    seen = attacked(name, clean, epsilon)
    assert 0 < seen.changed(clean).sum() <= epsilon * N
    assert np.isfinite(seen.x).all()
    assert set(np.unique(seen.labels)) == {-1.0, 1.0}
    assert seen.x.shape == clean.x.shape
    assert all(np.array_equal(a, b) for a, b in zip(before, clean, strict=True))


@pytest.mark.parametrize("name", PAIR_ATTACKS)
def test_a_seed_gives_the_same_attack(name, clean):
    one, two = (attacked(name, clean, seed=3) for _ in range(2))
    assert np.array_equal(one.x, two.x)
    assert np.array_equal(one.labels, two.labels)


def along(pairs, honest):
    """How much of the honest reward a plain fit keeps: 1 for all, 0 for none."""
    return plain(pairs) @ honest / (honest @ honest)


@pytest.mark.parametrize(
    "name", ["confident", "influence", "minimum_cost", "diverse_flips", "near", "planted_far"]
)
def test_what_knows_theta_takes_more_of_a_plain_fit_than_random_flips(name, clean):
    honest = plain(clean)
    assert along(attacked(name, clean), honest) < along(attacked("random_flips", clean), honest) - 0.1


@pytest.mark.parametrize("name", [name for name in PAIR_ATTACKS if by_raters(name)])
def test_raters_are_replaced_whole(name, clean):
    seen = attacked(name, clean)
    at = np.flatnonzero(seen.labels != clean.labels)
    replaced = np.unique(clean.raters[at])
    assert 1 <= len(replaced) <= 5
    of_them = np.isin(clean.raters, replaced)
    if name == "contrary_raters":
        assert np.array_equal(seen.labels[of_them], -clean.labels[of_them])
    if name == "first_raters":
        assert (seen.labels[of_them] == 1).all()
    assert np.array_equal(seen.labels[~of_them], clean.labels[~of_them])


def test_minimum_cost_shrinks_the_reward_and_turns_it_hardly(clean):
    """(1 − 2s)θ is the maximum of the likelihood; more flips reach a larger s."""
    honest = plain(clean)
    kept = []
    for epsilon in (0.05, 0.1):
        theta = plain(attacked("minimum_cost", clean, epsilon))
        kept.append(theta @ honest / (honest @ honest))
        assert np.linalg.norm(theta - kept[-1] * honest) < 0.25 * np.linalg.norm(honest)
    assert kept[1] < kept[0] - 0.1 < 0.8


def test_minimum_cost_is_the_optimum_of_the_linear_programme():
    """Of one feature with equal rows every flip moves the maximum alike: s follows from counting."""
    x, labels = np.ones((200, 1)), np.where(np.arange(200) < 150, 1.0, -1.0)
    pairs = AttackedPairs(x, labels, np.ones((400, 1)))
    seen = PAIR_ATTACKS["minimum_cost"](np.random.default_rng(0), pairs, 0.1, np.array([np.log(3.0)]))
    assert abs(int(seen.changed(pairs).sum()) - 20) <= 1
    assert (seen.labels[seen.changed(pairs)] == -1).all()


def test_diverse_flips_lie_farther_apart_than_the_most_confident(clean):
    def spread(pairs):
        rows = pairs.x[pairs.changed(clean)]
        apart = np.linalg.norm(rows[:, None] - rows[None], axis=2)
        return np.min(apart + np.eye(len(rows)) * 1e9, axis=1).mean()

    assert spread(attacked("diverse_flips", clean)) > 1.1 * spread(attacked("confident", clean))


def test_the_least_confident_flips_surprise_nobody(clean):
    seen = attacked("least_confident", clean)
    changed = seen.changed(clean)
    margins = np.abs(clean.x @ THETA)
    assert margins[changed].max() <= np.quantile(margins, 0.2)


def test_noise_that_depends_on_features_prefers_long_pairs(clean):
    changed = np.mean([attacked("feature_noise", clean, seed=s).changed(clean) for s in range(20)], axis=0)
    assert np.corrcoef(changed, np.linalg.norm(clean.x, axis=1))[0, 1] > 0.2
