"""Which pairs compare the same two options, beside NumPy's unique rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robust_rlhf_jax import Pairs
from robust_rlhf_jax.preferences import as_labelled, comparison_numbers
from robust_rlhf_jax.preferences.comparisons import comparisons_of


def by_rows(x):
    """Numbers of rows that are equal up to their sign, by sorting whole rows."""
    leading = np.sign(x[np.arange(len(x)), np.argmax(x != 0, axis=1)])
    return np.unique(x * np.where(leading == 0, 1, leading)[:, None] + 0.0, axis=0, return_inverse=True)[1]


def same(first, second):
    """Whether two numberings part the rows alike."""
    return np.array_equal(first[:, None] == first, second[:, None] == second)


@settings(deadline=None, max_examples=50)
@given(
    seed=st.integers(0, 10_000), k=st.integers(1, 300), kind=st.sampled_from(["levels", "one-hot", "drawn"])
)
def test_as_unique_rows_part_them(seed, k, kind):
    rng = np.random.default_rng(seed)
    options = {
        "levels": lambda: rng.integers(-2, 3, (12, k)).astype(float),
        "one-hot": lambda: np.eye(k)[rng.integers(0, k, 12)],
        "drawn": lambda: rng.normal(size=(12, k)) * np.logspace(-9, 9, k),
    }[kind]()
    a, b = rng.integers(0, 12, (2, 90))
    x = (options[a] - options[b]).astype(rng.choice([np.float32, np.float64]))
    found = comparisons_of(x, least=0.0)
    if not x.any():
        assert found is None
        return
    assert found is not None
    assert same(found, by_rows(x))
    assert set(found) == set(range(found.max() + 1))


def test_whichever_option_stands_first():
    rng = np.random.default_rng(0)
    options = rng.normal(size=(10, 4))
    a, b = rng.integers(0, 10, (2, 200))
    x = options[a] - options[b]
    assert same(comparisons_of(x), comparisons_of(x * rng.choice([-1, 1], 200)[:, None]))


@pytest.mark.parametrize("recur", [0, 10, 40])
def test_nothing_where_no_more_than_a_fifth_recurs(recur):
    x = np.random.default_rng(0).normal(size=(200, 3))
    x[:recur] = x[200 - recur :]
    assert comparisons_of(x) is None if 2 * recur <= 40 else comparisons_of(x) is not None


def test_equal_options_do_not_count():
    x = np.random.default_rng(0).normal(size=(100, 3))
    x[:60] = 0.0
    assert comparisons_of(x) is None


def test_nothing_of_no_pairs_and_missing_numbers():
    assert comparisons_of(np.zeros((0, 3))) is None
    assert comparisons_of(np.full((20, 3), np.nan)) is None


def test_pairs_tell_them_in_any_order_of_the_options():
    rng = np.random.default_rng(1)
    options = np.round(rng.normal(size=(8, 3)), 2)
    a, b = rng.integers(0, 8, (2, 300))
    found = [
        as_labelled(Pairs(*sides)).comparisons
        for sides in ((options[a], options[b]), (options[b], options[a]))
    ]
    assert same(*map(np.asarray, found))
    assert same(np.asarray(found[0]), np.asarray(comparison_numbers(options[a] - options[b])))
