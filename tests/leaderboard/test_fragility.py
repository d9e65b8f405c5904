"""How few votes change the first place: enumeration, refits, and the sum over two models by hand."""

import itertools

import numpy as np
import pytest

from robust_rlhf_jax.leaderboard import bradley_terry, fewest_changes


def after(wins, change):
    left = wins.astype(float).copy()
    for i, j, n in change.cells:
        left[i, j] -= n
        if change.how == "flipped":
            left[j, i] += n
    return left


def close_wins(seed=0, models=6, n=40):
    rng = np.random.default_rng(seed)
    theta = np.sort(rng.normal(size=models))[::-1] * 0.5
    chance = 1 / (1 + np.exp(theta[None] - theta[:, None]))
    wins = np.triu(rng.binomial(n, chance), 1)
    return wins + np.triu(n - wins, 1).T * np.triu(np.ones((models, models)), 1).T.astype(int)


@pytest.mark.parametrize("how", ["dropped", "flipped"])
@pytest.mark.parametrize("seed", range(3))
def test_the_votes_named_do_it_and_none_can_be_spared(how, seed):
    wins = close_wins(seed)
    change = fewest_changes(wins, how)
    theta = bradley_terry(wins)
    assert change.leader == int(np.argmax(theta))
    new = bradley_terry(after(wins, change))
    assert new[change.rival] > new[change.leader]
    assert sum(n for *_, n in change.cells) == change.votes
    assert change.share == pytest.approx(change.votes / wins.sum())
    for k in range(len(change.cells)):
        fewer = [(i, j, n - (m == k)) for m, (i, j, n) in enumerate(change.cells)]
        spared = bradley_terry(after(wins, change._replace(cells=fewer)))
        assert spared[change.rival] <= spared[change.leader] + 1e-9


def test_two_models_by_counting():
    assert fewest_changes(np.array([[0, 60], [40, 0]])).votes == 21
    assert fewest_changes(np.array([[0, 60], [40, 0]]), "flipped").votes == 11


def test_an_exact_tie_is_no_change():
    """Three dropped votes make these two ratings equal; a fourth is needed."""
    assert fewest_changes(np.array([[0, 2, 3], [4, 0, 4], [2, 1, 0]])).votes == 4
    assert fewest_changes(np.array([[0, 3, 3], [1, 0, 3], [1, 1, 0]]), "flipped").votes == 2


def test_three_models_by_enumeration():
    """Every way to drop up to five votes."""
    wins = np.array([[0, 6, 5], [5, 0, 6], [4, 3, 0]])
    cells = [(i, j) for i in range(3) for j in range(3) if i != j]
    leader = int(np.argmax(bradley_terry(wins)))
    best = None
    for size in range(1, 6):
        for chosen in itertools.combinations_with_replacement(cells, size):
            left = wins.astype(float).copy()
            for cell in chosen:
                left[cell] -= 1
            if left.min() >= 0 and int(np.argmax(bradley_terry(left))) != leader:
                best = size
                break
        if best:
            break
    found = fewest_changes(wins)
    assert found.votes <= best + 1
    assert found.votes >= best


def test_a_flip_does_more_than_a_drop():
    wins = close_wins(5)
    assert fewest_changes(wins, "flipped").votes <= fewest_changes(wins).votes


def test_names_do_not_matter():
    wins = close_wins(1)
    order = np.random.default_rng(0).permutation(len(wins))
    assert fewest_changes(wins).votes == fewest_changes(wins[np.ix_(order, order)]).votes


def test_where_nobody_can_get_there_it_says_none():
    assert (
        fewest_changes(np.array([[0, 5], [0, 0]])) is None
        or fewest_changes(np.array([[0, 5], [0, 0]])).votes == 5
    )


def test_votes_of_a_model_against_itself_are_no_share():
    assert fewest_changes(np.array([[50, 60], [40, 30]])).share == 0.21


def test_what_is_done_to_votes_has_a_name():
    with pytest.raises(ValueError, match="how='drop' is unknown: votes are dropped or flipped"):
        fewest_changes(np.array([[0, 60], [40, 0]]), "drop")


def test_of_votes_that_count_less_whole_ones_are_taken():
    found = fewest_changes(np.array([[0.0, 2.5], [1.0, 0.0]]))
    assert (found.votes, found.cells) == (2, [(0, 1, 2)])
    assert fewest_changes(np.array([[0.0, 1.5], [0.3, 0.0]])) is None
