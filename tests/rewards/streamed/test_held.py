"""What needs all rows takes a source that memory holds, and says why it does not take another."""

import jax
import numpy as np
import pytest

from robust_rlhf_jax import (
    Pairs,
    audit,
    check_preferences,
    estimate_epsilon,
    fit_reward,
    raters,
    robust_policy,
)
from robust_rlhf_jax.rewards import Streaming
from robust_rlhf_jax.rewards.streamed import held_pairs, in_memory
from robust_rlhf_jax.sources import ArraySource

SMALL = Streaming(memory=10_000)


def source(n=300, k=3, **more):
    rng = np.random.default_rng(3)
    x, theta = rng.normal(size=(n, k)), np.array([2.0, -1.0, 0.5])[:k]
    z = x * np.where(rng.random(n) < 1 / (1 + np.exp(-x @ theta)), 1, -1)[:, None]
    return ArraySource(z.astype(np.float32), **more)


def test_pairs_of_a_source_are_its_differences_and_groups():
    of = np.repeat(np.arange(30), 10)
    given = source(groups=of)
    pairs = held_pairs(given)
    np.testing.assert_array_equal(pairs.preferred_differences(), next(given.blocks(300)))
    np.testing.assert_array_equal(pairs.clusters, of)
    assert held_pairs(given, SMALL) is None


def test_pairs_of_a_source_keep_its_names():
    named = ArraySource.of_pairs(Pairs(np.eye(2), 1 - np.eye(2), names=("price", "time")))
    assert held_pairs(named).names == ("price", "time")
    assert held_pairs(source(4)).names == ("f0", "f1", "f2")


class Told:
    """A source that says it has other pairs than it gives."""

    groups = None

    def __init__(self, n_pairs=300, n_features=3):
        self.n_pairs, self.n_features, self.given = n_pairs, n_features, source()

    def blocks(self, rows):
        return self.given.blocks(rows)

    def fingerprint(self):
        return "told"


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (
            Told(n_pairs=299),
            "the source has 299 pairs and gave at least 300: it must give the same every time",
        ),
        (Told(n_pairs=301), "the source has 301 pairs and gave 300: it must give the same every time"),
        (Told(n_features=4), r"the source has 4 features and gave a block of shape \(300, 3\)"),
    ],
)
@pytest.mark.parametrize("ask", [fit_reward, held_pairs, audit.audit_source, estimate_epsilon])
def test_a_source_that_gives_other_pairs_than_it_said_is_refused(told, said, ask):
    with pytest.raises(ValueError, match=said):
        ask(told)


def test_what_is_in_memory_stays_as_it_is():
    pairs = held_pairs(source())
    assert in_memory(pairs, "nothing") is pairs
    with pytest.raises(ValueError, match="streaming is for a PairSource"):
        in_memory(pairs, "nothing", SMALL)


def test_too_many_rows_are_refused_with_the_reason():
    with pytest.raises(
        ValueError, match=r"^all rows count, which for 300 pairs of 3 features needs .*10 kB: give "
    ):
        in_memory(source(), "all rows count", SMALL)


@pytest.mark.parametrize(
    "call",
    [
        lambda given: robust_policy(jax.random.key(0), given, 0.1),
        check_preferences,
    ],
)
def test_what_takes_no_source_says_so(call):
    with pytest.raises(ValueError, match="and not a PairSource"):
        call(source())


@pytest.mark.slow
def test_audit_of_a_source_is_that_of_its_pairs():
    given = source()
    options = {"folds": 3, "repeats": 1}
    found = audit.audit(jax.random.key(0), given, **options)
    expected = audit.audit(jax.random.key(0), held_pairs(given), **options)
    np.testing.assert_array_equal(found.suspicion, expected.suspicion)
    says = "an audit fits every fold to all other pairs, which for 300.*or ask audit.audit_source"
    with pytest.raises(ValueError, match=says):
        audit.audit(jax.random.key(0), given, streaming=SMALL, **options)


@pytest.mark.slow
def test_raters_of_a_source_are_those_of_its_pairs():
    who = np.repeat(np.arange(30), 10)
    given = source()
    pairs = Pairs.of_differences(next(given.blocks(300)), np.ones(300))
    found, expected = raters.rate_raters(given, who), raters.rate_raters(pairs, who)
    assert found.rows == expected.rows
    assert raters.fit_weighed(given, who).table.rows == expected.rows
    with pytest.raises(ValueError, match="the mixture of raters' tastes takes hundreds of rounds"):
        raters.rate_raters(given, who, streaming=SMALL)


def test_tastes_of_too_many_features_are_refused_before_anything_is_read():
    wide = ArraySource(np.ones((100, 65), np.float32))
    with pytest.raises(ValueError, match="have 65 features, and the taste of a rater is told in at most 64"):
        raters.rate_raters(wide, np.arange(100) % 10)
