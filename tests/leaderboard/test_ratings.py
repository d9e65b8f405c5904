"""Bradley–Terry ratings: scikit-learn's, their errors, and votes that the rest contradicts."""

import copy
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from robust_rlhf_jax import Pairs
from robust_rlhf_jax.leaderboard import (
    Votes,
    believed,
    bradley_terry,
    fewest_changes,
    judged,
    rate,
    read_votes,
)
from robust_rlhf_jax.leaderboard.ratings import MIDDLE, POINTS, covariance, without_finite_rating


def votes(n=3_000, models=5, seed=0, ties=0.0):
    rng = np.random.default_rng(seed)
    theta = np.linspace(1.0, -1.0, models)
    first = rng.integers(0, models, n)
    second = (first + rng.integers(1, models, n)) % models
    outcome = np.where(rng.logistic(size=len(first)) < theta[first] - theta[second], 1, -1)
    outcome[rng.random(len(first)) < ties] = 0
    return Votes(first, second, outcome, tuple("abcdefgh"[:models]), rng.integers(0, 50, len(first)))


def test_ratings_are_scikit_learns():
    linear_model = pytest.importorskip("sklearn.linear_model")
    given = votes()
    x = np.eye(5)[given.first] - np.eye(5)[given.second]
    model = linear_model.LogisticRegression(C=1e6, fit_intercept=False, tol=1e-10, max_iter=10_000)
    expected = model.fit(x, given.outcome).coef_[0]
    np.testing.assert_allclose(bradley_terry(given.wins()), expected - expected.mean(), atol=2e-3)


def test_errors_are_those_of_draws():
    """Of ratings of two hundred samples, within five standard errors of a standard deviation."""
    found = np.array([bradley_terry(votes(n=800, seed=s).wins()) for s in range(200)])
    told = np.mean(
        [
            np.diagonal(covariance((v := votes(n=800, seed=s)).wins(), bradley_terry(v.wins())))
            for s in range(5)
        ],
        axis=0,
    )
    spread = found.std(axis=0, ddof=1)
    assert (np.abs(spread / np.sqrt(told) - 1) < 5 / np.sqrt(2 * 200)).all()


def test_a_model_that_never_lost_has_a_finite_rating_and_moves_nobody_else():
    wins = np.array([[0, 30, 0], [10, 0, 0], [20, 15, 0]])
    theta = bradley_terry(wins)
    assert np.isfinite(theta).all()
    assert theta[2] == theta.max()
    without = bradley_terry(wins[:2, :2])
    assert POINTS * abs((theta[0] - theta[1]) - (without[0] - without[1])) < 30


@pytest.mark.slow
def test_places_of_models_that_never_lost_or_never_met_follow_from_chains_of_wins():
    wins = np.array([[0, 30, 0, 0], [10, 0, 0, 0], [20, 15, 0, 0], [0, 0, 0, 0]])
    rated = Votes(*_votes_of(wins), tuple("abcd"))
    rows = {row.name: row for row in rate(rated)}
    assert without_finite_rating(wins) == [2, 3]
    assert rows["c"].best_place == 1
    assert rows["c"].worst_place == 2  # d may be better: nobody knows
    assert np.isnan(rows["c"].low)
    assert np.isnan(rows["d"].high)
    alone = {row.name: row for row in rate(Votes(*_votes_of(wins[:2, :2]), ("a", "b")))}
    assert rows["a"].high - rows["a"].low == pytest.approx(alone["a"].high - alone["a"].low, rel=1e-6)


def _votes_of(wins):
    first, second = (np.repeat(part, wins[wins > 0]) for part in np.nonzero(wins))
    return first, second, np.ones(len(first), int)


@pytest.mark.slow
def test_without_contradiction_both_ratings_are_the_same_and_the_order_is_by_rating():
    rows = rate(votes(ties=0.2))
    assert [row.name for row in rows] == list("abcde")
    for row in rows:
        assert row.robust == pytest.approx(row.plain, abs=0.5)
        assert row.low < row.plain < row.high
        assert row.best_place <= row.worst_place
    assert np.mean([row.plain for row in rows]) == pytest.approx(MIDDLE)


@pytest.mark.slow
def test_bots_that_vote_for_the_last_model_are_left_out():
    given = votes(seed=1)
    rng = np.random.default_rng(2)
    bots = rng.permutation(len(given.first))[:350]
    first, second, outcome = (part.copy() for part in given[:3])
    first[bots], second[bots], outcome[bots] = 4, 0, 1
    attacked = given._replace(first=first, second=second, outcome=outcome)
    honest, found = ({row.name: row for row in rate(v)} for v in (given, attacked))
    assert found["e"].plain > honest["e"].plain + 60
    assert abs(found["e"].robust - honest["e"].plain) < 40


@pytest.mark.slow
def test_ties_count_for_neither():
    given = votes(ties=0.3)
    decided = given._replace(
        **{n: getattr(given, n)[given.outcome != 0] for n in ("first", "second", "outcome", "raters")}
    )
    np.testing.assert_array_equal(given.wins(), decided.wins())
    assert [round(a.plain) for a in rate(given)] == [round(b.plain) for b in rate(decided)]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"outcome": np.array([True, False])}, "outcome must be 1 where"),
        ({"outcome": np.array([1, 2])}, "outcome must be 1 where"),
        ({"outcome": np.array(["a", "b"])}, "outcome must be 1 where"),
        ({"first": np.array([0, 2])}, "first must hold numbers of models, from 0 to 1"),
        ({"second": np.array([-1, 1])}, "second must hold numbers of models"),
        ({"second": np.array(["b", "b"])}, "second must hold numbers of models"),
        ({"names": ("a", "a")}, "names has 'a' twice"),
        (
            {"outcome": np.array([1])},
            r"first has shape \(2,\), second \(2,\) and outcome \(1,\): give one entry",
        ),
        ({"second": np.array([1])}, r"second \(1,\) and outcome \(2,\): give one entry for each vote"),
        ({"outcome": np.array(1)}, r"outcome \(\): give one entry"),
        (
            {"first": pd.Series([0, 0]), "outcome": pd.Series([1, -1])[::-1]},
            "first and outcome have the same index in another order",
        ),
        (
            {"first": pd.Series([0, 0]), "raters": pd.Series(["x", "y"])[::-1]},
            "first and raters have the same index",
        ),
    ],
)
def test_votes_that_say_nothing_are_refused(changes, said):
    votes = Votes(np.array([0, 0]), np.array([1, 1]), np.array([1, -1]), ("a", "b"))._replace(**changes)
    for use in (votes.wins, votes.pairs):
        with pytest.raises(ValueError, match=said):
            use()


@pytest.mark.slow
def test_a_vote_of_a_model_against_itself_counts_for_nobody():
    given = votes(n=300, models=3)
    odd = given._replace(
        first=np.r_[given.first, 0, 1],
        second=np.r_[given.second, 0, 1],
        outcome=np.r_[given.outcome, 1, -1],
        raters=np.r_[given.raters, 0, 1],
    )
    np.testing.assert_array_equal(odd.wins(), given.wins())
    np.testing.assert_array_equal(odd.decided().outcome, given.decided().outcome)
    assert odd.pairs().ties.sum() == 2
    assert rate(odd) == rate(given)


@pytest.mark.slow
def test_raters_may_be_a_list_and_need_not_be_known():
    given = votes(n=60, models=3)
    listed = given._replace(raters=[f"r{k}" for k in given.raters[:-2].tolist()] + [None, None])
    assert listed.decided().raters[-2:].tolist() == ["nobody, row 58", "nobody, row 59"]
    assert listed.pairs().n_pairs == 60
    assert judged(listed) is not None
    for nobody in (None, [None] * 60, [""] * 60):
        assert judged(given._replace(raters=nobody)) is None
    with pytest.raises(ValueError, match=r"raters has shape \(2,\): give one rater for each of the 60 votes"):
        given._replace(raters=["a", "b"]).wins()


def test_where_every_vote_goes_one_way_nobody_has_an_interval():
    wins = np.array([[0, 3, 2], [0, 0, 4], [0, 0, 0]])
    assert without_finite_rating(wins) == [0, 1, 2]
    given = Votes(*_votes_of(wins), tuple("abc"))
    everybody = SimpleNamespace(weights=np.ones(9))
    rows = rate(given, everybody)
    assert [(row.name, row.best_place, row.worst_place) for row in rows] == [
        ("a", 1, 1),
        ("b", 2, 2),
        ("c", 3, 3),
    ]
    assert np.isnan([(row.low, row.high) for row in rows]).all()


@pytest.mark.parametrize("function", [bradley_terry, fewest_changes])
@pytest.mark.parametrize(
    ("wins", "said"),
    [
        ([[0, -1], [1, 0]], r"wins\[0, 1\] is -1: give finite numbers"),
        ([[0, np.nan], [1, 0]], r"wins\[0, 1\] is nan"),
        (np.ones((2, 3)), r"wins has shape \(2, 3\): give \[M, M\]"),
        (
            Pairs(np.ones((3, 1)), np.zeros((3, 1))),
            r"wins is of the type Pairs, .*: give \[M, M\], how often",
        ),
        ([[0, "a"], [1, 0]], "wins is of the type list, and not of numbers alone"),
        (np.ones((0, 0)), r"wins has shape \(0, 0\)"),
        (Votes(np.array([0, 0]), np.array([1, 1]), np.array([1, -1]), ("a", "b")), r"give votes\.wins\(\)"),
    ],
)
def test_wins_that_are_none_are_refused(function, wins, said):
    with pytest.raises(ValueError, match=said):
        function(wins)


@pytest.mark.parametrize("column", ["count", "n_votes", "Frequency"])
def test_a_row_counts_as_often_as_it_says(tmp_path, column):
    file = tmp_path / "votes.csv"
    file.write_text(f"model_a,model_b,winner,judge,{column}\nx,y,A,Ann,3\ny,x,A,Ben,2.0\nx,y,tie,Ann,0\n")
    votes = read_votes(file)
    assert votes.wins().tolist() == [[0, 3], [2, 0]]
    assert list(votes.raters) == ["Ann"] * 3 + ["Ben"] * 2
    file.write_text(f"model_a,model_b,winner,{column}\nx,y,A,3\ny,x,A,2.5\ny,x,A,\n")
    with pytest.raises(ValueError, match=f"row 2, column {column} is '2.5', not how many votes"):
        read_votes(file)
    assert read_votes(file, skip_bad=2).skipped == 2


@pytest.mark.parametrize("weights", [[0.5, 2.0], (1, 3), np.array([True, True])])
def test_weights_may_be_a_list(weights):
    votes = Votes(np.array([0, 0]), np.array([1, 1]), np.array([1, 1]), ("a", "b"))
    assert votes.wins(weights)[0, 1] == sum(map(float, weights))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.float16])
def test_wins_outgrow_the_type_of_weights(dtype):
    votes = Votes(np.zeros(3000, int), np.ones(3000, int), np.ones(3000, int), ("a", "b"))
    assert votes.wins(np.ones(3000, dtype))[0, 1] == 3000


@pytest.mark.parametrize("weights", [[1.0], 2.0, [[1.0, 2.0]], ["1", "2"]])
def test_other_weights_than_one_for_each_vote_are_refused(weights):
    votes = Votes(np.array([0, 0]), np.array([1, 1]), np.array([1, 1]), ("a", "b"))
    with pytest.raises(ValueError, match="weights must be 2 numbers"):
        votes.wins(weights)


def test_a_frame_of_wins_goes_by_the_names_of_models():
    wins = np.array([[0, 30, 20], [10, 0, 25], [15, 5, 0]])
    table = pd.DataFrame(wins, index=list("abc"), columns=list("abc"))
    expected = bradley_terry(wins)
    for given in (table, table[["c", "a", "b"]], pd.DataFrame(wins, columns=list("abc")), pd.DataFrame(wins)):
        np.testing.assert_array_equal(bradley_terry(given), expected)
    numbered = pd.DataFrame(wins).loc[[2, 0, 1]]
    np.testing.assert_allclose(bradley_terry(numbered), expected[[2, 0, 1]])
    assert fewest_changes(table[["c", "a", "b"]]) == fewest_changes(wins)
    winners, losers = pd.Series(list("aaabbbc")), pd.Series(list("bbdddda"))  # c never lost, d never won
    for function in (bradley_terry, fewest_changes):
        with pytest.raises(ValueError, match="other models as rows than as columns, such as 'c'"):
            function(pd.crosstab(winners, losers))


def test_votes_show_how_many_they_are():
    given = votes(models=8)
    assert repr(given) == "Votes(3,000 votes on 8 models (a, b, c, d, e, f, …); with raters)"
    assert repr(Votes([0], [1], [1], ("a", "b"))) == "Votes(1 vote on 2 models (a, b))"


def test_votes_are_compared_by_what_they_hold():
    given = votes(n=20)
    assert given == copy.deepcopy(given)
    for other in (
        given._replace(outcome=-given.outcome),
        given._replace(raters=None),
        given._replace(skipped=1),
        tuple(given),
    ):
        assert given != other
        assert not given == other  # noqa: SIM201 (both are asked)


def test_wins_that_a_mask_hides_are_missing():
    with pytest.raises(ValueError, match=r"wins\[0, 1\] is nan"):
        bradley_terry(np.ma.masked_array([[0, 2], [1, 0]], [[0, 1], [0, 0]]))


@pytest.mark.parametrize(
    ("first", "second", "outcome"), [([], [], []), ([0, 0], [1, 1], [0, 0]), ([0, 1], [0, 1], [1, 1])]
)
def test_votes_of_which_none_decides_are_refused(first, second, outcome):
    """None, ties alone, models against themselves."""
    votes = Votes(*(np.array(part, int) for part in (first, second, outcome)), ("a", "b"))
    with pytest.raises(ValueError, match=r"^no vote says which of two different models is better"):
        rate(votes)


@pytest.mark.parametrize("door", [rate, believed, judged])
@pytest.mark.parametrize("given", [Pairs(np.eye(2), np.zeros((2, 2))), np.eye(2), "votes.csv"])
def test_what_is_no_votes_is_called_by_its_type(door, given):
    with pytest.raises(
        TypeError, match=f"^votes are of the type {type(given).__name__}: give leaderboard.Votes"
    ):
        door(given)
