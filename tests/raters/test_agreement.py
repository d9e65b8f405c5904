"""Krippendorff's α against the textbook's data and a double loop over pairs of ratings."""

import itertools

import numpy as np
import pandas
import pytest

from robust_rlhf_jax.raters import krippendorff_alpha

# Krippendorff 2011, table of four observers and twelve units; 0 is missing.
OBSERVERS = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3],
        [0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0],
    ]
)


def by_pairs_of_ratings(units, values):
    """1 − D_o/D_e from the definition: all ordered pairs of ratings."""
    kept = [i for i in range(len(units)) if np.sum(units == units[i]) > 1]
    units, values = units[kept], values[kept]
    n = len(units)
    observed = sum(
        (values[i] != values[j]) / (np.sum(units == units[i]) - 1)
        for i, j in itertools.permutations(range(n), 2)
        if units[i] == units[j]
    )
    expected = sum(values[i] != values[j] for i, j in itertools.permutations(range(n), 2))
    return 1 - observed / n / (expected / n / (n - 1))


def test_the_data_of_the_textbook():
    _, unit = np.nonzero(OBSERVERS)
    found = krippendorff_alpha(unit, OBSERVERS[OBSERVERS > 0])
    assert round(found.alpha, 3) == 0.743
    assert (found.units, found.ratings) == (11, 40)
    assert found.low < found.alpha < found.high


@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_definition(seed):
    rng = np.random.default_rng(seed)
    units, values = rng.integers(0, 12, 40), rng.choice(["a", "b", "tie"], 40)
    np.testing.assert_allclose(krippendorff_alpha(units, values).alpha, by_pairs_of_ratings(units, values))


def test_neither_order_nor_names_matter():
    rng = np.random.default_rng(0)
    units, values = rng.integers(0, 12, 40), rng.integers(0, 2, 40)
    order = rng.permutation(40)
    found = krippendorff_alpha(units, values)
    again = krippendorff_alpha(units[order] * 7, np.where(values[order] > 0, "x", "y"))
    np.testing.assert_allclose(found, again)


def test_which_option_of_a_unit_is_the_first_plays_no_part():
    """Nearly all name the first: were that a habit of the coding, α would be near 0."""
    rng = np.random.default_rng(0)
    units, values = np.repeat(np.arange(40), 3), (rng.random(120) < 0.1).astype(int)
    turned = np.isin(units, rng.choice(40, 20, replace=False))
    opposite = {0: 1, 1: 0}
    found = krippendorff_alpha(units, values, opposite=opposite)
    again = krippendorff_alpha(units, np.where(turned, 1 - values, values), opposite=opposite)
    np.testing.assert_allclose(found, again)
    assert found.alpha > 0.5
    assert krippendorff_alpha(units, values).alpha < 0.2
    # All name one option of each: it is perfect agreement, though only one value is seen.
    assert krippendorff_alpha(units, np.zeros(120, int), opposite=opposite).alpha == 1


def test_the_interval_covers():
    """Raters who repeat a unit's value with chance .6 and else toss a coin: two agree beyond chance with .36."""
    covered = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        units = np.repeat(np.arange(150), 3)
        values = np.where(
            rng.random(450) < 0.6, np.repeat(rng.integers(0, 2, 150), 3), rng.integers(0, 2, 450)
        )
        found = krippendorff_alpha(units, values)
        covered += found.low <= 0.36 <= found.high
    # .95 of 60 less five standard errors.
    assert covered >= 48


def test_where_nothing_can_be_said():
    assert krippendorff_alpha([1, 2, 3], [0, 1, 0]) is None
    assert krippendorff_alpha([1, 1, 2, 2], [0, 0, 0, 0]) is None
    assert krippendorff_alpha([], []) is None
    with pytest.raises(ValueError, match="give one of each"):
        krippendorff_alpha([1, 2], [0])


NAN = float("nan")


@pytest.mark.parametrize(
    ("units", "values"),
    [
        ([1, 1, 2, 2, 3, 3, 4], ["a", "a", "b", "a", "b", NAN, "b"]),
        (["p", "p", "q", "q", NAN, NAN, None], ["a", "a", "b", "a", "b", "a", "b"]),
        ([1, 1, 2, 2, 3, 3, 3], pandas.array(["a", "a", "b", "a", None, None, "b"], dtype="string")),
        ([1, 1, 2, 2, 3, 3, 3], pandas.Series(["a", "a", "b", "a", None, None, "b"], dtype="category")),
        ([1, 1, 2, 2, 3, 3, 3], np.array(["a", "a", "b", "a", pandas.NaT, np.float32(NAN), "b"], object)),
        (pandas.to_datetime(["2020", "2020", "2021", "2021", None, None, None]), list("aabaabb")),
    ],
)
def test_what_is_missing_is_no_rating_and_no_unit(units, values):
    found = krippendorff_alpha(units, values)
    assert found == krippendorff_alpha([1, 1, 2, 2], list("aaba"))
    assert (found.units, found.ratings) == (2, 4)


def test_values_of_several_types_are_told_apart():
    mixed = krippendorff_alpha([1, 1, 2, 2, 3, 3], [1, "1", "tie", "tie", 1, 1])
    assert mixed == krippendorff_alpha([1, 1, 2, 2, 3, 3], list("abccaa"))
