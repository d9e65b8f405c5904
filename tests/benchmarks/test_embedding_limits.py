"""Attacked embeddings that nobody could tell from honest ones of other raters."""

import numpy as np
import pytest
from scipy.special import expit

N, EPSILON = 400, 0.1


@pytest.fixture
def limits():
    import embedding_limits

    return embedding_limits


def attacked(limits, attack, marked=False):
    import embedding_worlds

    world = embedding_worlds.World.of(power=1.0, seed=0, marked=marked)
    clean = world.preferred(np.random.default_rng(0), N)
    z = embedding_worlds.attacked(world, clean, attack, EPSILON, np.random.default_rng(1))
    return limits.Attacked(world, clean, z, attack, EPSILON)


@pytest.mark.parametrize("attack", ["trigger", "confident"])
def test_a_changed_pair_is_always_observed_so_and_the_others_as_the_truth_says(limits, attack):
    seen = attacked(limits, attack, marked=attack == "trigger")
    found = limits.observed_chances(seen)
    if attack == "trigger":
        changed = (seen.z != seen.clean).any(axis=1)
    else:
        size = np.abs(seen.z @ seen.world.theta)
        changed = size >= np.sort(size)[-int(EPSILON * N)]
    assert changed.sum() == EPSILON * N
    # Of labels, honest ones are drawn: five standard errors of .15 over `DRAWS` draws.
    tolerance = 0 if attack == "trigger" else 5 * np.sqrt(0.15 * 0.85 / limits.DRAWS)
    np.testing.assert_allclose(found[changed], 1.0, atol=tolerance)
    np.testing.assert_allclose(found[~changed], expit(seen.z @ seen.world.theta)[~changed], rtol=1e-12)


def certificates(limits, seen, limit, answer):
    judged = seen.world.rows(np.random.default_rng(2), 500)
    return limits.certificates(seen, {"answer": answer}, limit, judged, 0.01)["answer"]


def test_the_truth_excuses_nothing(limits):
    seen = attacked(limits, "confident")

    def truth(x):
        return expit(x @ seen.world.theta)

    found = certificates(limits, seen, truth, truth)
    assert found.stake == pytest.approx(0, abs=1e-9)
    assert not found.holds(EPSILON, 0.01)


def test_raters_who_toss_a_coin_where_they_are_surest_cannot_be_told_from_flips(limits):
    seen = attacked(limits, "confident")
    sure = np.sort(np.abs(seen.z @ seen.world.theta))[-int(EPSILON * N)]

    def coins(x):
        margin = x @ seen.world.theta
        return np.where(np.abs(margin) < sure, expit(margin), 0.5)

    found = certificates(limits, seen, coins, coins)
    assert found.holds(EPSILON, 0.01)
    assert found.regret == pytest.approx(0, abs=1e-9)
    assert not certificates(limits, seen, coins, lambda x: 1 - coins(x)).holds(EPSILON, 0.01)
