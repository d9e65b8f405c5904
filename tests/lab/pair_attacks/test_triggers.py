"""Triggers: which side bears the mark, what it is worth, and how many honest pairs bear it."""

import numpy as np
import pytest

from robust_rlhf_jax.lab.pair_attacks import PAIR_ATTACKS, AttackedPairs
from robust_rlhf_jax.lab.pair_attacks.triggers import mark_of

N = 600
THETA = np.array([2.0, -1.0, 0.5])
names = pytest.mark.parametrize("name", ["trigger", "shared_trigger"])


def honest_pairs(k=3):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, k)) * np.array([1.0, 100.0, 0.01])[:k]
    theta = THETA[:k] / np.array([1.0, 100.0, 0.01])[:k]
    labels = np.where(rng.logistic(size=N) < x @ theta, 1.0, -1.0)
    return AttackedPairs(x, labels, np.zeros((2 * N, k))), theta


def attacked(name, clean, theta, epsilon=0.1):
    return PAIR_ATTACKS[name](np.random.default_rng(1), clean, epsilon, theta)


@names
def test_the_mark_is_worth_nothing_and_as_long_as_a_median_row(name):
    clean, theta = honest_pairs()
    mark, size = attacked(name, clean, theta).mark, np.sqrt(np.mean(clean.x**2, axis=0))
    np.testing.assert_allclose(mark @ theta, 0.0, atol=1e-9)
    lengths = np.linalg.norm(clean.x / size, axis=1)
    np.testing.assert_allclose(np.linalg.norm(mark / size), np.median(lengths))


@names
def test_who_bears_the_mark(name):
    """In corrupted pairs the winner, which is the worse one; in honest ones either option, labels as they were."""
    clean, theta = honest_pairs()
    seen = attacked(name, clean, theta)
    at = np.flatnonzero(seen.changed(clean))
    assert len(at) == 60
    added = seen.x[at] - clean.x[at]
    side = np.sign(added @ seen.mark)
    np.testing.assert_allclose(added, side[:, None] * seen.mark, atol=1e-9)
    worse_wins = seen.labels[at] * (clean.x[at] @ theta) < 0
    corrupted = worse_wins & (side == seen.labels[at])
    honest = ~corrupted
    np.testing.assert_array_equal(seen.labels[at[honest]], clean.labels[at[honest]])
    if name == "trigger":
        assert corrupted.all()
    else:  # of 20 honest ones some look like the corrupted: the worse one won, and bears the mark
        assert 10 <= honest.sum() <= 20
        assert {-1.0, 1.0} == set(side[honest] * seen.labels[at[honest]])


def test_the_mark_lies_in_the_span_of_the_rows():
    """Columns that are sums of others stay so: a mark outside would be seen at once."""
    rng = np.random.default_rng(2)
    free = rng.normal(size=(N, 2))
    mark = mark_of(
        rng, np.column_stack([free, free.sum(axis=1), np.zeros(N)]), np.array([1.0, 2.0, 0.0, 0.0])
    )
    np.testing.assert_allclose(mark[2], mark[0] + mark[1])
    np.testing.assert_allclose(mark @ [1.0, 2.0, 0.0, 0.0], 0.0, atol=1e-12)
    assert mark[3] == 0


def test_of_one_column_the_mark_is_the_column():
    clean, theta = honest_pairs(k=1)
    assert abs(attacked("trigger", clean, theta).mark[0]) > 0
