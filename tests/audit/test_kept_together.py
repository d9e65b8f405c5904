"""Folds keep copies of one text pair together."""

import dataclasses

import numpy as np
import pytest

from robust_rlhf_jax.audit import hold_out
from robust_rlhf_jax.audit.kept_together import kept_together
from robust_rlhf_jax.io import Pairs, Texts


def pairs_of(prompt, chosen, rejected):
    rng = np.random.default_rng(0)
    n = len(prompt)
    pairs = Pairs(rng.normal(size=(n, 2)), rng.normal(size=(n, 2)))
    return dataclasses.replace(pairs, texts=Texts(prompt, chosen, rejected))


def test_copies_in_either_order_are_together_and_others_alone():
    pairs = pairs_of(
        ["p", "q", "p", "p", "q"],
        ["a", "a", "a", "b", "a"],
        ["b", "b", "c", "a", "b"],
    )  # fmt: skip
    assert kept_together(pairs, None, 3).tolist() == [0, 1, 2, 0, 1]


def test_known_groups_and_features_alone_stay_as_they_are():
    pairs = pairs_of(["p", "p"], ["a", "a"], ["b", "b"])
    assert kept_together(pairs, np.array([3, 4]), 2).tolist() == [3, 4]
    assert kept_together(dataclasses.replace(pairs, texts=None), None, 2).tolist() == [0, 1]


def test_fewer_texts_than_folds_are_divided_all_the_same():
    pairs = pairs_of(["p"] * 4, ["a", "a", "b", "b"], ["c"] * 4)
    assert kept_together(pairs, None, 3).tolist() == [0, 1, 2, 3]
    assert kept_together(pairs, None, 2).tolist() == [0, 0, 2, 2]


@pytest.mark.slow
def test_copies_do_not_foretell_the_label_that_is_held_out():
    """Coin tosses, each four times: fits that have seen a copy foretell far more than half of them."""
    rng = np.random.default_rng(1)
    x = np.repeat(rng.normal(size=(80, 40)), 4, axis=0)
    pairs = Pairs.of_differences(x, np.ones(320))
    numbers = np.repeat(np.arange(80), 4).astype(str).tolist()
    with_texts = dataclasses.replace(pairs, texts=Texts(numbers, ["yes"] * 320, ["no"] * 320))
    share = lambda of: (hold_out(of, epsilon=0.0, repeats=2).margins > 0).mean()  # noqa: E731
    assert share(pairs) > 0.7
    assert abs(share(with_texts) - 0.5) < 5 * 0.5 / np.sqrt(80)
