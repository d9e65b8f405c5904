"""How few votes change the first place: by the influence of each vote on the gap of two models, checked by refits."""

from typing import Literal, NamedTuple, get_args

import numpy as np
from jaxtyping import Float

from .ratings import bradley_terry, checked_wins, covariance, win_chances

How = Literal["dropped", "flipped"]
# Rivals of the first model that are tried, the nearest first; and the share of what is still to go that a step takes.
RIVALS, STEP = 5, 0.25
# The gap, in nats, from which on a model is ahead: beyond the rounding of two equal ratings.
AHEAD = 1e-8


class Change(NamedTuple):
    """`votes`, so many of them dropped or flipped (`how`), make `rival` the first in the place of `leader`; `share` of
    all decided votes; `cells`: whose wins over whom they are, (winner, loser, number), by numbers of models.

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.leaderboard import fewest_changes
    >>> found = fewest_changes(np.array([[0, 60], [40, 0]]), "flipped")
    >>> found.leader, found.rival, found.how, found.votes, found.share
    (0, 1, 'flipped', 11, 0.11)
    """

    leader: int
    rival: int
    how: How
    votes: int
    share: float
    cells: list[tuple[int, int, int]]


def fewest_changes(wins: Float[np.ndarray, "M M"], how: How = "dropped") -> Change | None:
    """The fewest votes found that change the first place, or None where none of the rivals gets there.

    A vote for i over j moves the gap of leader l and rival r by (e_l − e_r)ᵀH⁺(e_i − e_j)(1 − p_ij) to first order when
    it is dropped, and by (e_l − e_r)ᵀH⁺(e_i − e_j) when it is flipped, H the information. Steps take the votes that
    move it most, a quarter of what is still to go, and fit again; at the end none of the votes taken can be spared. The
    number is an upper bound: other votes might do with fewer.

    **Raises:** ValueError as `bradley_terry`, or for another `how`.

    **Source:** influence of sets, Broderick, Giordano & Meager 2020; of votes, Huang et al. 2025 (arXiv:2508.11847).

    **Example:**

    >>> import numpy as np
    >>> from robust_rlhf_jax.leaderboard import fewest_changes
    >>> found = fewest_changes(np.array([[0, 60], [40, 0]]))
    >>> found.votes, found.cells  # of 60 wins 20 make it even, one more turns it
    (21, [(0, 1, 21)])
    """
    if how not in get_args(How):
        raise ValueError(f"how={how!r} is unknown: votes are {' or '.join(get_args(How))}.")
    wins = checked_wins(wins)
    theta = bradley_terry(wins)
    order = np.argsort(-theta, kind="stable")
    found = [_against(wins, int(order[0]), int(r), how) for r in order[1 : 1 + RIVALS]]
    return min(
        (change for change in found if change is not None), key=lambda change: change.votes, default=None
    )


def _against(wins: Float[np.ndarray, "M M"], leader: int, rival: int, how: How) -> Change | None:
    taken = np.zeros_like(wins)
    total = wins.sum()
    while True:
        left = _after(wins, taken, how)
        theta = bradley_terry(left)
        gap = theta[leader] - theta[rival]
        if gap < -AHEAD:
            break
        moves = _moves(left, theta, leader, rival, how)
        moves[wins - taken < 1.0] = 0.0
        if moves.max() <= 1e-12:
            return None
        best = np.unravel_index(np.argmax(moves), moves.shape)
        number = max(1.0, np.floor(min(STEP * gap / moves[best], wins[best] - taken[best])))
        taken[best] += number
    taken = _without_surplus(wins, taken, leader, rival, how)
    cells = [(int(i), int(j), int(taken[i, j])) for i, j in np.argwhere(taken > 0)]
    return Change(leader, rival, how, int(taken.sum()), float(taken.sum() / total), cells)


def _after(wins: np.ndarray, taken: np.ndarray, how: How) -> np.ndarray:
    return wins - taken + (taken.T if how == "flipped" else 0.0)


def _moves(wins: np.ndarray, theta: np.ndarray, leader: int, rival: int, how: How) -> np.ndarray:
    """How much the gap of leader and rival falls, to first order, if one more win of i over j is dropped or flipped."""
    inverse = covariance(wins, theta)
    along = inverse[leader] - inverse[rival]
    size = 1 - win_chances(theta) if how == "dropped" else 1.0
    return (along[:, None] - along[None]) * size


def _without_surplus(wins: np.ndarray, taken: np.ndarray, leader: int, rival: int, how: How) -> np.ndarray:
    """The fewest votes that suffice: each cell is reduced by bisection, the one that moves the gap least first."""
    theta = bradley_terry(_after(wins, taken, how))
    moves = _moves(_after(wins, taken, how), theta, leader, rival, how)
    for cell in sorted(map(tuple, np.argwhere(taken > 0)), key=lambda c: moves[c]):
        low, high = -1.0, taken[cell]
        while high - low > 1:
            middle = np.floor((low + high) / 2)
            trial = taken.copy()
            trial[cell] = middle
            theta = bradley_terry(_after(wins, trial, how))
            low, high = (low, middle) if theta[leader] < theta[rival] - AHEAD else (middle, high)
        taken[cell] = high
    return taken
