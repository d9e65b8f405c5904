"""A delivery on a small grid: six sparse reward features, and the rarest of them decides what a plan is worth."""

from collections import deque

import jax
import numpy as np
from jaxtyping import Int, PRNGKeyArray

from robust_rlhf_jax.checks import check_key
from robust_rlhf_jax.mdp import LinearMDP

from .family import Family
from .grid import MOVES
from .single_precision import in_single_precision

DELIVERY_FEATURES = ("goal", "bonus", "penalty", "road", "rough", "bump")
# The goal is worth more than all that twenty steps can gain or lose elsewhere by ordinary play; ‖θ‖₂ = 2.42 ≤ √6. A fit
# bounded by √6 shrinks the goal to about three bonuses, which must still be worth the way to it.
REWARDS = (2.4, 0.16, -0.18, 0.04, -0.12, -0.12)
GOAL, BONUS, PENALTY, ROAD, ROUGH, BUMP, PLAIN, OBSTACLE = range(8)
LAYOUTS = 1000


def delivery_grid(
    key: PRNGKeyArray, *, size: int = 6, horizon: int = 20, slip: float = 0.02, goal: float = REWARDS[0]
) -> LinearMDP:
    """size×size cells, four moves, d = S cells that can be entered, p = 6 reward features, the same θ at each step.

    A move aims at a cell: the next one, or its own where an obstacle or the edge stands in the way. φ(s,a) is one-hot
    in the cell aimed at, μ of that cell: there with probability 1 − `slip`, else one of the cells beside it (the goal
    is entered by aim alone, and never left). The reward features are one-hot in what the cell aimed at is, or all
    zero: `DELIVERY_FEATURES` with θ = `REWARDS`, the goal paying `goal`; a bump is a move that stays; plain ground and
    all moves at the goal show nothing. The start is in the bottom-left corner, the goal in the top-right one, behind
    a gate of one cell, so that random play hardly ever sees it; `key` draws the rest (`delivery_map`).

    θ is small beside the labels' temperature that makes pairs telling: label at about .18 (`sample_segments`).

    **Raises:** ValueError for `size` < 4, `slip` outside [0, 1), `horizon` < 2·`size`, ‖θ‖₂ > √6, or what is
    not one key.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import worlds
    >>> grid = worlds.delivery_grid(jax.random.key(1), size=4, horizon=10)
    >>> grid.n_actions, dict(zip(worlds.DELIVERY_FEATURES, grid.theta[0].round(2).tolist()))["goal"] > 2
    (4, True)
    """
    if not 0 <= slip < 1:
        raise ValueError(f"slip={slip} must lie in [0, 1).")
    theta = np.asarray([goal, *REWARDS[1:]])
    if np.linalg.norm(theta) > len(theta) ** 0.5:
        raise ValueError(f"goal={goal} makes θ longer than √6: give 2.43 or less.")
    kinds = delivery_map(key, size=size, horizon=horizon)
    targets, aimed = _targets(kinds)
    n_states = len(targets)
    start = np.eye(n_states)[_number(kinds)[-1, 0]]
    return in_single_precision(
        features=np.eye(n_states)[targets],
        transition_measures=np.tile(_arrivals(kinds, slip), (horizon, 1, 1)),
        theta=np.tile(theta, (horizon, 1)),
        initial_distribution=start,
        reward_features=aimed,
    )


def delivery_map(key: PRNGKeyArray, *, size: int = 6, horizon: int = 20) -> np.ndarray:
    """What each cell [size, size] of `delivery_grid` is: an index into `DELIVERY_FEATURES`, `PLAIN` or `OBSTACLE`.

    States number the cells that are no obstacles, row by row. About a third of the cells are plain; bonus cells lie
    apart in rough ground, so that going to and fro earns little. Drawn until the goal can be reached in
    `horizon` − 4 steps and every cell from the start.

    **Raises:** ValueError for `size` < 4, `horizon` < 2·`size`, or what is not one key.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import worlds
    >>> kinds = worlds.delivery_map(jax.random.key(1), size=4, horizon=10)
    >>> kinds.shape, worlds.DELIVERY_FEATURES[kinds[0, -1]]
    ((4, 4), 'goal')
    """
    check_key(key)
    if size < 4 or horizon < 2 * size:
        raise ValueError(f"size={size}, horizon={horizon}: give 4 or more, and a horizon of 2·size or more.")
    random = np.random.default_rng(np.asarray(jax.random.bits(key, (4,))))
    for _ in range(LAYOUTS):
        kinds = _draw(random, size)
        if _fair(kinds, horizon - 4):
            return kinds
    raise ValueError(f"size={size}, horizon={horizon}: no map was found whose goal is that near.")


def _draw(random: np.random.Generator, size: int):
    kinds = np.full((size, size), PLAIN)
    kinds[0, -1], kinds[1, -1] = GOAL, OBSTACLE
    free = np.ones((size, size), bool)
    free[0, -2:], free[1, -1], free[-1, 0] = False, False, False
    cells = random.permutation(np.argwhere(free))
    ends = np.cumsum(np.round(np.array([0.06, 0.09, 0.09, 0.17, 0.06]) * size**2).astype(int))
    for kind, part in zip((BONUS, PENALTY, OBSTACLE, ROAD, ROUGH), np.split(cells, ends)[:-1], strict=True):
        kinds[tuple(part.T)] = kind
    kinds[_around_bonuses(kinds) & ((kinds == PLAIN) | (kinds == ROAD))] = ROUGH
    return kinds


def _around_bonuses(kinds: Int[np.ndarray, "size size"]):
    """Whether each cell touches a bonus cell."""
    bonus = np.pad(kinds == BONUS, 1)
    return np.any([np.roll(bonus, move, (0, 1)) for move in MOVES], axis=0)[1:-1, 1:-1]


def _fair(kinds: Int[np.ndarray, "size size"], within: int):
    """Bonus cells stand apart and away from the start, all cells can be reached, and the goal in `within` steps."""
    beside = _around_bonuses(kinds)
    if beside[-1, 0] or beside[kinds == BONUS].any():
        return False
    distance = _distances(kinds)
    return bool((distance[kinds != OBSTACLE] >= 0).all() and distance[0, -1] <= within)


def _distances(kinds: Int[np.ndarray, "size size"]):
    """Steps from the bottom-left corner, −1 where no path leads."""
    distance = np.full(kinds.shape, -1)
    distance[-1, 0] = 0
    queue = deque([(len(kinds) - 1, 0)])
    while queue:
        cell = queue.popleft()
        for other in _beside(kinds, cell):
            if distance[other] < 0:
                distance[other] = distance[cell] + 1
                if kinds[other] != GOAL:
                    queue.append(other)
    return distance


def _next(kinds: Int[np.ndarray, "size size"], cell: tuple[int, int], move: tuple[int, int]):
    """The cell that a move aims at: its own where an obstacle or the edge is in the way, or at the goal."""
    row, column = cell[0] + move[0], cell[1] + move[1]
    inside = 0 <= row < len(kinds) and 0 <= column < len(kinds)
    stuck = kinds[cell] == GOAL or not inside or kinds[row, column] == OBSTACLE
    return cell if stuck else (row, column)


def _beside(kinds: Int[np.ndarray, "size size"], cell: tuple[int, int]):
    return [other for other in (_next(kinds, cell, move) for move in MOVES) if other != cell]


def _number(kinds: Int[np.ndarray, "size size"]):
    """State of every cell that can be entered."""
    return np.cumsum(kinds.ravel() != OBSTACLE).reshape(kinds.shape) - 1


def _targets(kinds: Int[np.ndarray, "size size"]):
    """(State aimed at [S, A], reward features [S, A, 6])."""
    cells = [tuple(cell) for cell in np.argwhere(kinds != OBSTACLE)]
    number, targets = _number(kinds), np.zeros((len(cells), len(MOVES)), int)
    features = np.zeros((*targets.shape, len(DELIVERY_FEATURES)))
    for s, cell in enumerate(cells):
        for a, move in enumerate(MOVES):
            aim = _next(kinds, cell, move)
            targets[s, a] = number[aim]
            shown = BUMP if aim == cell else kinds[aim]
            if kinds[cell] != GOAL and shown != PLAIN:
                features[s, a, shown] = 1.0
    return targets, features


def _arrivals(kinds: Int[np.ndarray, "size size"], slip: float):
    """μ [S, S]: where a move that aims at each cell ends."""
    number, mu = _number(kinds), np.eye(int((kinds != OBSTACLE).sum()))
    for cell in map(tuple, np.argwhere((kinds != OBSTACLE) & (kinds != GOAL))):
        beside = [number[other] for other in _beside(kinds, cell) if kinds[other] != GOAL]
        if beside:
            mu[number[cell], number[cell]] = 1 - slip
            mu[number[cell], beside] += slip / len(beside)
    return mu


FAMILIES = [
    Family(
        "delivery_grid",
        {
            "delivery": lambda key: delivery_grid(key),
            "delivery_tiny": lambda key: delivery_grid(key, size=4, horizon=10),
        },
        usual=True,
    )
]
