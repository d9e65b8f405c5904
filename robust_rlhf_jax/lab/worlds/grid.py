"""A large grid with slip, walls and goals, exactly linear through soft state aggregation."""

import jax
import numpy as np
from jaxtyping import Bool, Int, PRNGKeyArray

from robust_rlhf_jax.checks import check_key
from robust_rlhf_jax.mdp import LinearMDP

from .aggregation import aggregate, tent_memberships
from .family import Family
from .single_precision import in_single_precision

MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))  # up, down, left, right in (row, column)


def gridworld(
    key: PRNGKeyArray,
    *,
    size: int = 50,
    horizon: int | None = None,
    cells: int = 4,
    slip: float = 0.1,
    wall_density: float = 0.08,
) -> LinearMDP:
    """size×size cells, four actions, d = 4·cells² ≤ 64 features.

    A wall with a gap at the top parts the start (bottom left) from the goal (bottom right, reward 1 a step); a
    trap in the top-left corner costs ½. `key` draws further single walls with density `wall_density`. An action
    moves up to half a macro-cell, stops at walls, and with probability `slip` goes one of the other three ways.

    **Raises:** ValueError for `size` < 4, `cells` outside [2, 4], a horizon below 1, probabilities outside [0, 1),
    walls that fill a whole macro-cell, as they do where `size` and `cells` are both 4, or what is not one key.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import worlds
    >>> grid = worlds.gridworld(jax.random.key(0), size=6, cells=2, horizon=4)
    >>> grid.n_actions, grid.dim, grid.horizon
    (4, 16, 4)
    """
    if size < 4:
        raise ValueError(f"size={size}: the grid needs at least 4×4 cells.")
    if not 2 <= cells <= 4:
        raise ValueError(f"cells={cells}: give 2, 3 or 4 macro-cells a side (d = 4·cells² ≤ 64).")
    if not (0 <= slip < 1 and 0 <= wall_density < 1):
        raise ValueError(f"slip={slip} and wall_density={wall_density} must lie in [0, 1).")
    if horizon is not None and horizon < 1:
        raise ValueError(f"horizon={horizon}: give 1 or more, or leave it out.")
    walls = grid_walls(key, size, wall_density)
    stride = max(1, round((size - 1) / (cells - 1) / 2))
    destinations, probabilities = _moves(walls, stride, slip)
    memberships = _memberships(size, cells)
    phi, mu = aggregate(memberships, destinations, probabilities, ~walls.ravel())
    horizon = 6 * (cells - 1) if horizon is None else horizon
    reward = np.zeros((cells, cells, 4))
    reward[-1, -1], reward[0, 0] = 1.0, -0.5
    return in_single_precision(
        features=phi,
        transition_measures=np.tile(mu, (horizon, 1, 1)),
        theta=np.tile(reward.ravel(), (horizon, 1)),
        initial_distribution=_start(walls, cells),
    )


def grid_walls(key: PRNGKeyArray, size: int, wall_density: float = 0.08) -> np.ndarray:
    """Boolean map [size, size] of the walls that `gridworld` builds from the same key.

    **Raises:** ValueError for what is not one key.

    **Example:**

    >>> import jax
    >>> from robust_rlhf_jax import worlds
    >>> walls = worlds.grid_walls(jax.random.key(0), 6, wall_density=0.0)
    >>> walls.shape, int(walls.sum())  # the wall between start and goal alone
    ((6, 6), 5)
    """
    check_key(key)
    walls = np.array(jax.random.uniform(key, (size, size)) < wall_density)
    walls[size // 4 :, size // 2] = True
    corner = max(1, size // 8)
    for rows in (slice(None, corner), slice(-corner, None)):
        for columns in (slice(None, corner), slice(-corner, None)):
            walls[rows, columns] = False
    return walls


def _step(walls: Bool[np.ndarray, "size size"], positions: Int[np.ndarray, "S 2"], move: tuple[int, int]):
    size = walls.shape[0]
    target = np.clip(positions + np.asarray(move), 0, size - 1)
    blocked = walls[target[:, 0], target[:, 1]]
    return np.where(blocked[:, None], positions, target)


def _moves(walls: Bool[np.ndarray, "size size"], stride: int, slip: float):
    """Next states [A, S, 4] of each action's four outcomes and their probabilities."""
    size = walls.shape[0]
    start = np.stack(np.divmod(np.arange(size * size), size), axis=-1)
    ends = []
    for move in MOVES:
        positions = start
        for _ in range(stride):
            positions = _step(walls, positions, move)
        ends.append(positions[:, 0] * size + positions[:, 1])
    destinations = np.broadcast_to(np.stack(ends, axis=-1), (4, size * size, 4))
    chances = np.full((4, 4), slip / 3) + np.eye(4) * (1 - slip - slip / 3)
    return destinations, np.broadcast_to(chances[:, None, :], destinations.shape)


def _memberships(size: int, cells: int):
    line = tent_memberships(np.arange(size) / (size - 1), cells)
    return np.einsum("ik,jl->ijkl", line, line).reshape(size * size, cells * cells)


def _start(walls: Bool[np.ndarray, "size size"], cells: int):
    size = walls.shape[0]
    reach = max(1, size // (2 * cells))
    start = np.zeros((size, size))
    start[-reach:, :reach] = 1.0
    start[walls] = 0.0
    return (start / start.sum()).ravel()


FAMILIES = [
    Family(
        "gridworld",
        {
            "quick": lambda key: gridworld(key, size=6, cells=2, horizon=4),
            "full": lambda key: gridworld(key, size=50, cells=2, horizon=10),
            "tiny": lambda key: gridworld(key, size=4, cells=2, horizon=2),
        },
        usual=True,
    )
]
