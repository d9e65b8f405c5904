"""`rate_raters` and `fit_weighed`: bots are named, honest raters are not, and sides and order do not matter."""

import copy
import csv

import numpy as np
import pandas
import pytest
from scipy.stats import binomtest

from robust_rlhf_jax import Pairs, Status, fit_reward
from robust_rlhf_jax.lab.attacks.rater_bots import BOTS, replace_raters
from robust_rlhf_jax.raters import Rater, RaterTable, RaterVotes, WeighedReward, fit_weighed, rate_raters
from robust_rlhf_jax.raters.rating import _checked, _wilson

K, EACH, P = 60, 25, 4
THETA = np.array([2.0, -1.5, 1.0, 0.5])
WHO = np.repeat(np.arange(K), EACH)


def honest(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(len(WHO), P))
    return x * np.where(rng.logistic(size=len(x)) < x @ THETA, 1, -1)[:, None]


def rated(kind, share=0.1, seed=0):
    """(Pairs, habits, which raters are bad) of a file with bots; names of raters in the order of their numbers."""
    turned = THETA * [-1, 1, 1, 1]
    made = replace_raters(np.random.default_rng(seed), honest(seed), WHO, kind, share, turned)
    pairs = Pairs.of_differences(
        made.z.astype(np.float32), np.ones(len(WHO)), raters=np.array([f"r{k:02}" for k in WHO])
    )
    return pairs, {"chose_first": made.chose_first, "chose_longer": made.chose_longer}, made.bad


@pytest.mark.slow
def test_honest_raters_count_in_full_and_the_fit_is_the_plain_one():
    pairs, habits, _ = rated("none")
    model = fit_weighed(pairs, **habits)
    assert (model.table.weights == 1).all()
    np.testing.assert_allclose(model.theta, fit_reward(pairs, 0).theta, atol=1e-3)
    assert {row.kind for row in model.table.rows} <= {"attentive", "noisy", "other taste"}
    assert model.table.counts()["attentive"] >= 57


@pytest.mark.slow
@pytest.mark.parametrize("kind", BOTS)
def test_bots_are_named(kind):
    pairs, habits, bad = rated(kind)
    model = fit_weighed(pairs, **habits)
    named = np.array([row.kind == kind for row in model.table.rows])
    assert named[bad].mean() >= 0.8
    assert named[~bad].mean() <= 0.04
    assert model.table.weights[np.repeat(bad, EACH)].mean() < 0.2
    away = lambda theta: np.linalg.norm(np.asarray(theta)[:P] - THETA)  # noqa: E731
    assert away(model.theta) < away(fit_reward(pairs, 0).theta)


@pytest.mark.slow
def test_an_honest_minority_has_another_taste_and_keeps_its_weight():
    pairs, habits, minority = rated("minority")
    table = rate_raters(pairs, **habits)
    found = [row for row, other in zip(table.rows, minority, strict=True) if other]
    assert sum(row.kind == "other taste" for row in found) >= 3
    assert all(row.weight > 0.5 for row in found)
    assert all("f0" in row.differs_in for row in found if row.kind == "other taste")


@pytest.mark.slow
def test_of_those_named_another_taste_most_have_one():
    """Tastes vary around the crowd's, and all answers are honest: six files of 40 raters with 12 answers each."""
    named, rightly = 0, 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        crowd, x, who = (
            rng.normal(size=6) * [2, 1.5, 1, 0.7, 0.5, 0.3],
            rng.normal(size=(480, 6)),
            np.repeat(np.arange(40), 12),
        )
        tastes = crowd + np.abs(crowd).mean() * rng.normal(size=(40, 6))
        labels = np.where(rng.logistic(size=len(who)) < np.sum(x * tastes[who], axis=1), 1, -1)
        found = rate_raters(Pairs.of_differences(x, labels), who)
        for row in found.rows:
            features = [int(name[1:]) for name in row.differs_in]
            named += bool(features)
            rightly += any(tastes[int(row.name), j] * crowd[j] < 0 for j in features)
        assert (found.weights == 1).all()
    assert named >= 15
    assert rightly >= 0.75 * named


@pytest.mark.slow
def test_nobody_is_noisy_where_the_others_have_too_few_pairs_to_know_the_reward():
    """Ten pairs of each of three honest raters, and eight features: six files."""
    for seed in range(6):
        rng, who = np.random.default_rng(seed), np.repeat(np.arange(3), 10)
        x, crowd = rng.normal(size=(len(who), 8)), 0.7 * rng.normal(size=8)
        labels = np.where(rng.logistic(size=len(who)) < x @ crowd, 1, -1)
        assert {row.kind for row in rate_raters(Pairs.of_differences(x, labels), who).rows} == {"attentive"}


@pytest.mark.slow
def test_raters_of_less_certain_answers_are_noisy():
    """Six of forty raters with forty pairs each answer with three tenths of the others' certainty."""
    rng, who = np.random.default_rng(0), np.repeat(np.arange(40), 40)
    x, crowd = rng.normal(size=(len(who), 4)), THETA * np.where(who < 6, 0.3, 1.0)[:, None]
    labels = np.where(rng.logistic(size=len(who)) < np.sum(x * crowd, axis=1), 1, -1)
    noisy = [
        int(row.name) for row in rate_raters(Pairs.of_differences(x, labels), who).rows if row.kind == "noisy"
    ]
    assert len(noisy) >= 3
    assert max(noisy) < 6


@pytest.mark.slow
def test_neither_sides_nor_order_nor_names_matter():
    pairs, habits, _ = rated("contrary")
    table = rate_raters(pairs, **habits)
    rng = np.random.default_rng(1)
    turn, order = rng.choice([-1, 1], len(WHO)), rng.permutation(len(WHO))
    x = np.asarray(pairs.preferred_differences())
    other = Pairs.of_differences((x * turn[:, None])[order], turn[order], raters=pairs.raters[order])
    same = rate_raters(other, **{name: habit[order] for name, habit in habits.items()})
    assert [row.kind for row in table.rows] == [row.kind for row in same.rows]
    np.testing.assert_allclose(table.weights[order], same.weights, atol=1e-2)
    renamed = rate_raters(other, K - WHO[order], **{name: habit[order] for name, habit in habits.items()})
    np.testing.assert_allclose(same.weights, renamed.weights, atol=1e-2)


@pytest.mark.slow
def test_the_table_is_written_whole(tmp_path):
    pairs, habits, _ = rated("contrary")
    table = rate_raters(pairs, **habits)
    table.save(tmp_path / "raters.csv")
    with open(tmp_path / "raters.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["kind"] for row in rows] == [row.kind for row in table.rows]
    assert rows[0]["name"] == "r00"
    odd = table._replace(rows=tuple(table.rows[0]._replace(name=name) for name in ("=1+1", "Ann \ud83d")))
    odd.save(tmp_path / "odd.csv")
    assert "'=1+1" in (tmp_path / "odd.csv").read_text()
    assert "Ann \\ud83d" in (tmp_path / "odd.csv").read_text()


def test_bad_input_is_one_sentence():
    pairs, _, _ = rated("none")
    bare = Pairs.of_differences(np.asarray(pairs.preferred_differences()), np.ones(len(WHO)))
    with pytest.raises(ValueError, match="nobody says who labelled the pairs"):
        rate_raters(bare)
    with pytest.raises(
        ValueError, match=r"raters has shape \(3,\): give one rater for each of the 1500 pairs"
    ):
        rate_raters(bare, [1, 2, 3])
    with pytest.raises(ValueError, match="all pairs have one rater"):
        rate_raters(bare, np.zeros(len(WHO)))
    with pytest.raises(ValueError, match="chose_first must be -1, 0 or 1 for each of the 1500 pairs"):
        rate_raters(pairs, chose_first=np.full(len(WHO), 2))


def answers(seed=0, raters=6, each=10):
    """(Pairs of honest raters, whether each preferred the longer option: half the time)."""
    rng, who = np.random.default_rng(seed), np.repeat(np.arange(raters), each)
    x = rng.normal(size=(len(who), 2))
    return Pairs.of_differences(
        x, np.where(rng.logistic(size=len(x)) < x[:, 0], 1, -1), raters=who
    ), rng.random(len(who)) < 0.5


@pytest.mark.parametrize("habit", ["chose_first", "chose_longer"])
def test_truths_are_read_however_they_come_and_0_and_1_are_refused(habit):
    """As pandas gives them after a merge; 0 for false would be "nobody knows", and the rater of a habit."""
    pairs, longer = answers()
    some = longer.astype(object)
    some[[0, 7]] = None
    told = np.where(longer, 1, -1)
    known = told.copy()
    known[[0, 7]] = 0
    nullable = pandas.Series(some).astype("boolean")
    for given, code in (
        (longer.tolist(), told),
        (longer.astype(object), told),
        (some, known),
        (np.where(pandas.isna(some), np.nan, some), known),
        (nullable, known),
        (np.where(known == 0, np.nan, known), known),
        (pandas.Series(known), known),
    ):
        assert _checked(pairs, None, **{"chose_first": None, "chose_longer": None, habit: given})[-1] == {
            habit.replace("chose_", "always "): pytest.approx(code)
        }
    for numbers in (longer.astype(int), longer.astype(float), longer.astype(int).astype(object)):
        with pytest.raises(
            ValueError, match=f"{habit} holds 0 and 1 alone, .*: give truths, or -1 where the other"
        ):
            rate_raters(pairs, **{habit: numbers})
    for wrong in (["yes"] * 60, [True, 1] * 30, longer[:5], 1, longer[None]):
        with pytest.raises(
            ValueError, match=f"{habit} must be -1, 0 or 1 for each of the 60 pairs, or true or false"
        ):
            rate_raters(pairs, **{habit: wrong})


def test_a_table_shows_how_many_raters_are_of_each_kind():
    ann = Rater("ann", 40, 0.9, 0.8, 0.97, 1.2, 0.7, 1.9, 1.0, 1.0, "attentive", 0.0, (), 1.0)
    rows = tuple(ann._replace(kind=kind) for kind in ["attentive"] * 1200 + ["random"])
    table = RaterTable(rows, np.ones(48_040))
    assert repr(table) == "RaterTable(1,201 raters of 48,040 pairs: 1,200 attentive, 1 random)"


def test_results_are_compared_by_what_they_hold():
    ann = Rater("ann", 40, 0.9, 0.8, 0.97, 1.2, 0.7, 1.9, 1.0, 1.0, "attentive", 0.0, (), 1.0)
    table = RaterTable((ann,), np.ones(40))
    weighed = WeighedReward(np.ones(2), np.int32(0), table)
    for one, other in (
        (table, table._replace(weights=np.zeros(40))),
        (weighed, weighed._replace(theta=np.zeros(2))),
        (RaterVotes(np.ones((2, 2)), np.ones((2, 2, 2)), np.array(["ann"]), None), table),
    ):
        assert one == copy.deepcopy(one)
        assert one != other
        assert one != tuple(one)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 8])
def test_labels_that_a_reward_predicts_one_and_all_make_no_weight_nan(seed):
    """The crowd's taste gets longer in every round, and what leaps ahead of it leaves the floats."""
    rng = np.random.default_rng(seed)
    for _ in range(8):
        x = rng.normal(size=(12, 2))
        x *= np.sign(x @ rng.normal(size=2))[:, None]
        found = fit_weighed(Pairs.of_differences(x, np.ones(12)), np.arange(12) % 2)
        assert np.isfinite(found.table.weights).all()
        assert all(np.isfinite(row.probability) for row in found.table.rows)
        assert found.theta.any()


@pytest.mark.slow
def test_labels_that_cancel_out_make_no_weight_nan():
    x = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]] * 3)
    found = fit_weighed(Pairs.of_differences(x, np.ones(12)), np.repeat([0, 1], 6))
    np.testing.assert_array_equal(found.theta, 0)
    np.testing.assert_array_equal(found.table.weights, 1)
    assert int(found.status) == Status.CONVERGED


@pytest.mark.slow
def test_pairs_that_no_reward_decides_count_half_in_the_agreement():
    """Equal options: margin 0, for and against nobody."""
    x = np.where(np.arange(40)[:, None] < 30, honest(3)[:40], 0.0)
    who = np.repeat(["a", "b", "c", "even"], 10)
    table = rate_raters(Pairs.of_differences(x, np.ones(40), raters=who))
    even = table.rows[-1]
    assert (even.name, even.agreement) == ("even", 0.5)
    assert even.agreement_low == pytest.approx(1 - even.agreement_high)


def test_intervals_of_agreement_are_wilsons():
    n = np.array([1, 3, 40, 700])
    for right in (0 * n, n // 3, n):
        expected = [
            binomtest(int(a), int(b)).proportion_ci(method="wilson") for a, b in zip(right, n, strict=True)
        ]
        np.testing.assert_allclose(_wilson(right / n, n), np.transpose(expected), atol=1e-12)
