"""Votes with ties by rater: the posterior on a grid by hand, shrinkage, orientation, and held-out votes."""

import dataclasses
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pandas
import pytest

from robust_rlhf_jax import Pairs, load_rail_choices
from robust_rlhf_jax.raters import fit_votes
from robust_rlhf_jax.raters._places import places_of
from robust_rlhf_jax.raters.votes import RELIABILITIES, TIES, RaterVotes, _posterior, averaged_chances

THETA = np.array([2.0, -1.0])


def votes(n_raters=40, each=25, seed=0):
    """(pairs, a, b): raters of reliability a and log ν b."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(n_raters), each)
    a, b = np.maximum(rng.normal(1.0, 0.4, n_raters), 0.1), rng.normal(-0.5, 1.0, n_raters)
    first, second = rng.normal(size=(2, len(who), 2))
    half = 0.5 * a[who] * ((first - second) @ THETA)
    outcome = np.argmax(np.stack([half, b[who], -half], 1) + rng.gumbel(size=(len(who), 3)), axis=1)
    turned = (outcome == 2)[:, None]
    chosen, rejected = np.where(turned, second, first), np.where(turned, first, second)
    return Pairs(chosen, rejected, strength=np.where(outcome == 1, 0.0, 1.0), raters=who), a, b


@pytest.mark.slow
def test_reliability_and_ties_are_those_of_the_raters():
    pairs, a, b = votes(each=60)
    found = fit_votes(pairs)
    assert np.corrcoef(found.mean[:-1, 1], b)[0, 1] > 0.9
    assert np.corrcoef(found.reliability, a)[0, 1] > 0.6
    errors = (found.mean[:-1, 1] - b) / np.sqrt(found.covariance[:-1, 1, 1])
    assert np.abs(errors).max() < 5


def test_the_posterior_of_a_rater_is_the_sum_over_the_grid():
    """NumPy in float64, with the crowd that was found."""
    rng = np.random.default_rng(0)
    margins, tied, raters = rng.normal(size=60), rng.random(60) < 0.3, np.repeat(np.arange(6), 10)
    found = _posterior(jnp.asarray(margins), jnp.asarray(tied), jnp.asarray(raters), 6)
    mean, covariance = (np.asarray(part, float) for part in found)
    grid = np.stack(np.meshgrid(RELIABILITIES, TIES, indexing="ij"), -1).reshape(-1, 2)
    for rater in range(6):
        half, of = 0.5 * np.outer(grid[:, 0], margins[raters == rater]), tied[raters == rater]
        total = np.log(np.exp(half) + np.exp(-half) + np.exp(grid[:, 1:]))
        logs = np.sum(np.where(of, grid[:, 1:], half) - total, axis=1)
        logs -= 0.5 * np.sum((grid - mean[-1]) ** 2 / np.diagonal(covariance[-1]), axis=1)
        chance = np.exp(logs - logs.max())
        chance /= chance.sum()
        np.testing.assert_allclose(mean[rater], chance @ grid, atol=2e-4)
        np.testing.assert_allclose(
            covariance[rater], np.cov(grid.T, aweights=chance, ddof=0) + 1e-6 * np.eye(2), atol=5e-4
        )


@pytest.mark.slow
def test_busy_raters_are_known_better_than_the_coarse_grid_tells():
    """Two raters of 4,000 votes each between points of the grid."""
    rng = np.random.default_rng(0)
    who = np.repeat([0, 1], 4_000)
    a, b = np.array([0.875, 1.125]), np.array([-0.375, -0.125])
    margins = 2.0 * rng.normal(size=len(who))
    half = 0.5 * a[who] * margins
    outcome = np.argmax(np.stack([half, b[who], -half], 1) + rng.gumbel(size=(len(who), 3)), axis=1)
    turned = np.where(outcome == 2, -margins, margins)
    found = _posterior(jnp.asarray(turned, jnp.float32), jnp.asarray(outcome == 1), jnp.asarray(who), 2)
    mean, covariance = (np.asarray(part, float)[:2] for part in found)
    errors = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    assert (np.abs(mean - np.stack([a, b], 1)) < 5 * errors).all()
    assert (errors > 0.015).all()
    assert (errors < 0.1).all()


def test_chances_are_averaged_over_what_is_not_known():
    mean, covariance = np.array([[1.0, -0.5]]), np.array([[[0.3, 0.1], [0.1, 0.5]]])
    drawn = np.random.default_rng(0).multivariate_normal(mean[0], covariance[0], 200_000)
    weights = np.stack([np.exp(0.4 * drawn[:, 0]), np.exp(drawn[:, 1]), np.exp(-0.4 * drawn[:, 0])], 1)
    chances = weights / weights.sum(axis=1, keepdims=True)
    error = 5 * chances.std(axis=0) / np.sqrt(len(drawn))
    assert (
        np.abs(averaged_chances(np.array([0.8]), mean, covariance)[0] - chances.mean(axis=0)) < error + 2e-4
    ).all()


@pytest.mark.slow
def test_held_out_votes_are_predicted_better_by_rater():
    pairs, *_ = votes(n_raters=80, each=80, seed=1)
    test = np.arange(pairs.n_pairs) % 4 == 0
    found, held = fit_votes(pairs.take(np.flatnonzero(~test))), pairs.take(np.flatnonzero(test))
    x, outcome = held.preferred_differences(), np.where(held.ties, 1, 0)
    rows = np.arange(len(x))
    losses = [-np.log(found.chances(x, who)[rows, outcome]) for who in (None, held.raters)]
    gain = losses[0] - losses[1]
    assert gain.mean() > 5 * gain.std() / np.sqrt(len(gain)) > 0


@pytest.mark.slow
def test_a_rater_of_few_votes_is_as_the_crowd_and_a_stranger_is_the_crowd():
    pairs, *_ = votes()
    one_more = pairs.take(np.r_[np.arange(pairs.n_pairs), 0])
    one_more = dataclasses.replace(one_more, raters=np.r_[pairs.raters, 99])
    found = fit_votes(one_more)
    crowd = found.mean[-1]
    assert np.abs(found.mean[-2] - crowd).max() < 0.5
    x = np.array([[1.0, 0.0], [0.0, 1.0]])
    np.testing.assert_array_equal(found.chances(x, np.array(["nobody", "knows"])), found.chances(x))
    np.testing.assert_allclose(found.chances(x).sum(axis=1), 1.0)


@pytest.mark.slow
def test_neither_the_order_of_votes_nor_the_first_option_matters():
    pairs, *_ = votes()
    order = np.random.default_rng(1).permutation(pairs.n_pairs)
    tied = pairs.ties[:, None]
    turned = dataclasses.replace(
        pairs,
        chosen=np.where(tied, pairs.rejected, pairs.chosen),
        rejected=np.where(tied, pairs.chosen, pairs.rejected),
    )
    one = fit_votes(pairs)
    for other in (fit_votes(pairs.take(order)), fit_votes(turned)):
        np.testing.assert_allclose(one.mean, other.mean, atol=2e-3)
    x = np.array([[1.0, 0.5]])
    np.testing.assert_allclose(one.chances(x), one.chances(-x)[:, ::-1], atol=1e-9)


@pytest.mark.slow
def test_without_ties_nearly_none_are_expected():
    pairs, *_ = votes()
    decided = pairs.decided()
    assert fit_votes(decided).chances(np.zeros((1, 2)))[0, 1] < 0.05


def test_no_raters_is_one_sentence():
    pairs, *_ = votes()
    with pytest.raises(ValueError, match="nobody says who labelled the pairs"):
        fit_votes(dataclasses.replace(pairs, raters=None))


def test_other_data_and_another_number_of_raters_are_refused_before_a_fit():
    pairs, *_ = votes()
    with pytest.raises(
        ValueError, match=r"^raters has shape \(3,\): give one rater for each of the 1000 pairs\.$"
    ):
        fit_votes(pairs, [1, 2, 3])
    for other in (np.ones((4, 2)), load_rail_choices()):
        with pytest.raises(TypeError, match=rf"^data is of the type {type(other).__name__}: give Pairs"):
            fit_votes(other, np.arange(4))


@pytest.mark.slow
def test_a_vote_without_a_name_has_a_rater_of_its_own():
    pairs, *_ = votes()
    some = pairs.raters.astype(object)
    some[[3, 7]] = None
    assert set(fit_votes(pairs, some).names) - set(map(str, pairs.raters)) == {
        "nobody, row 3",
        "nobody, row 7",
    }


def test_a_rater_is_found_however_a_number_is_written():
    names = np.array(["4", "17", "Ann", "nobody, row 3"])
    asked = [4, 4.0, "4", "4.0", np.float32(4), 17, " Ann", "Bob", None, float("nan"), "nobody, row 3"]
    assert places_of(asked, names).tolist() == [0, 0, 0, 0, 0, 1, 2, 4, 4, 4, 4]
    for numbers in (np.array([4, 17]), np.array([4.0, 17.0])):
        assert places_of(["17", "4.0", 4, 17.0, "04"], numbers).tolist() == [1, 0, 0, 1, 2]
    assert places_of(pandas.array(["4", None, "17"], dtype="string"), names).tolist() == [0, 4, 1]
    # Two raters that "4" could be: it is the one who is written so, and 4 is neither.
    twins = np.array(["4", "4.0"])
    assert places_of(["4", "4.0", 4, "4.00"], twins).tolist() == [0, 1, 2, 2]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["one is missing", "floats", "mixed"])
def test_known_raters_vote_as_themselves_where_a_name_is_missing(kind):
    pairs, *_ = votes(n_raters=6, each=12)
    names = pairs.raters.astype(float if kind == "floats" else object)
    names[3] = np.nan if kind != "mixed" else "Ann"
    found = fit_votes(pairs, names)
    x = np.array([[1.0, 0.0]])
    mine = [found.chances(x, [name]) for name in (4, 4.0, "4")]
    np.testing.assert_array_equal(mine[0], mine[1])
    np.testing.assert_array_equal(mine[0], mine[2])
    assert np.abs(mine[0] - found.chances(x)).max() > 1e-3


@pytest.mark.slow
def test_differences_in_a_frame_are_taken_by_name_and_other_shapes_refused():
    rng = np.random.default_rng(0)
    x = pandas.DataFrame(rng.normal(size=(40, 2)), columns=["price", "time"])
    said = np.where(rng.logistic(size=40) < 2 * x["price"], 1, -1)
    votes = fit_votes(Pairs.of_differences(x, said), np.arange(40) % 4)
    np.testing.assert_array_equal(votes.chances(x[["time", "price"]]), votes.chances(x.to_numpy()))
    for given, who, message in (
        (x[["price"]].to_numpy(), None, r"differences has shape \(40, 1\): give \[M, 2\]"),
        (x.to_numpy()[0], None, r"differences has shape \(2,\)"),
        (x[["price"]], None, "the data frame has no column 'time'"),
        (x, [0, 1], r"raters has shape \(2,\): give one for each of the 40 pairs"),
    ):
        with pytest.raises(ValueError, match=message):
            votes.chances(given, who)


def test_votes_of_raters_show_how_many_raters_and_features_there_are():
    reward = SimpleNamespace(theta=np.ones(2), names=("price", "time"))
    found = RaterVotes(np.ones((3, 2)), np.ones((3, 2, 2)), np.array(["Ann", "Ben"]), reward)
    assert repr(found) == "RaterVotes(2 raters (Ann, Ben) by a reward of 2 features (price, time))"
