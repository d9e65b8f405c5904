"""Raters at odds with the rest."""

from types import SimpleNamespace

import numpy as np
import pytest
from issue_batches import found_in, numeric
from text_pairs import made_up_fit

from robust_rlhf_jax.audit.issues import Batch, find_issues, measure_raters
from robust_rlhf_jax.audit.issues._rater import _measure, rater


def test_the_fault_is_found_and_explained(tmp_path):
    found_in(tmp_path, "rater", "agrees with the rest in", 0.1)


def test_reliability_of_raters():
    rng = np.random.default_rng(0)
    raters = np.repeat(["good", "coin", "liar", "few"], [4000, 200, 100, 5])
    pairs = numeric(rng.normal(size=(4305, 3)), raters=raters)
    wrong = [*range(0, 200), *range(4000, 4100), *range(4200, 4300)]
    batch = Batch(pairs, made_up_fit(pairs, wrong))
    found = {r.name: r for r in measure_raters(batch)}
    assert [found[name].flagged for name in ("good", "coin", "liar", "few")] == [False, True, True, False]
    assert found["liar"].reliability < -0.9
    assert found["coin"].reliability == pytest.approx(0, abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("pairs_each", [12, 40])
def test_many_half_reliable_raters_are_flagged_in_one_file_of_a_hundred(pairs_each):
    rng, n, flagged = np.random.default_rng(pairs_each), 300, 0
    raters = np.repeat(np.arange(n), pairs_each)
    for _ in range(60):
        sure = np.tanh(np.abs(rng.normal(size=raters.shape)))
        right = rng.random(raters.shape) < 0.5 + 0.25 * sure
        chance = 0.5 + 0.5 * np.where(right, sure, -sure)
        fit = SimpleNamespace(agreement=lambda chance=chance: chance, fitted=np.ones(len(raters), bool))
        flagged += any(r.flagged for r in measure_raters(Batch(SimpleNamespace(raters=raters), fit)))
    # .6 are expected: five standard deviations above it.
    assert flagged <= 4


def test_a_rater_who_opposes_ten_of_twelve_clear_pairs_is_flagged_alone_and_not_among_many():
    chance = np.full((400, 12), 0.8)
    chance[0, :10] = 0.2
    fit = SimpleNamespace(agreement=lambda: chance.reshape(-1), fitted=np.ones(chance.size, bool))
    few = Batch(SimpleNamespace(raters=np.repeat(np.minimum(np.arange(400), 1), 12)), fit)
    many = Batch(SimpleNamespace(raters=np.repeat(np.arange(400), 12)), fit)
    assert [r.flagged for r in measure_raters(few)] == [True, False]
    assert not any(r.flagged for r in measure_raters(many))


def test_raters_may_be_numbers():
    """The bundled rail choices number their people."""
    pairs = numeric(np.random.default_rng(0).normal(size=(60, 3)), raters=np.repeat([1, 2, 3], 20))
    found = find_issues(Batch(pairs, made_up_fit(pairs, ())))
    assert found["rater"].flag.shape == (60,)
    assert "of 3 raters" in found["rater"].summary


def test_pairs_that_the_rest_does_not_decide_count_half_in_the_agreement():
    rater = _measure("ann", np.array([0.8, 0.8, -0.8, 0.0, 0.0, 0.0]))
    assert rater.agreement == pytest.approx(3.5 / 6)
    assert rater.expected == pytest.approx((3 * 0.9 + 3 * 0.5) / 6)


def test_one_rater_is_spoken_of_as_one():
    chance = np.full(60, 0.8)
    chance[:20] = 0.2
    fit = SimpleNamespace(agreement=lambda: chance, fitted=np.ones(60, bool))
    batch = Batch(SimpleNamespace(raters=np.repeat(["a", "b", "c"], 20)), fit)
    assert rater(batch).summary == "1 of 3 raters is at odds with the rest, on 20 pairs."
