"""River-swim: a chain against the current, where one wrong transition estimate costs the whole return."""

import numpy as np

from robust_rlhf_jax.mdp import LinearMDP

from .aggregation import aggregate, tent_memberships
from .family import Family
from .single_precision import in_single_precision


def chain_mdp(
    *,
    n_states: int = 20,
    n_actions: int = 2,
    dim: int = 10,
    horizon: int = 10,
    success: float = 0.8,
    left_reward: float = 0.05,
    contrast: float = 0.2,
    exploring_starts: bool = False,
) -> LinearMDP:
    """River-swim (Strehl & Littman 2008) with soft state aggregation.

    The last action swims right: a stride with probability `success`, back with 0.05, else it stays; every other
    action drifts a stride left. A step pays `left_reward` in the leftmost cell and 1 for swimming in the
    rightmost, so that a planner who doubts the current never leaves; both shrink together where ‖θ_h‖ would
    exceed √d. The stride is one cell's width.

    Actions in the same place have similar features, as in practice: φ = ψ(s) ⊗ f_a, f_a = (√(1−c²), c·g_a) with
    g_a the corners of a regular simplex and c = `contrast`. What tells swimming from drifting is thus the least
    covered direction of any data set, and a feature of unit length along it is unlike any real one.
    Episodes start at the left end, or anywhere with `exploring_starts`.
    Deterministic: a family with one member per size.

    **Raises:** ValueError if `dim` is not a multiple of `n_actions` with at least 2 cells, for fewer than two
    actions, fewer states than cells, a horizon below 1, for `success` outside (0, 0.95], or `contrast` outside (0, ½].

    **Example:**

    >>> from robust_rlhf_jax import worlds
    >>> chain = worlds.chain_mdp(n_states=6, dim=4, horizon=3)
    >>> chain.features.shape, chain.horizon, float(chain.initial_distribution[0])
    ((6, 2, 4), 3, 1.0)
    """
    if n_actions < 2 or dim % n_actions or dim // n_actions < 2:
        raise ValueError(f"dim={dim} must be n_actions={n_actions} (≥ 2) times the number of cells (≥ 2).")
    if not 0 < success <= 0.95:
        raise ValueError(f"success={success} must lie in (0, 0.95]: 0.05 is the chance of being swept back.")
    if not 0 < contrast <= 0.5:
        raise ValueError(f"contrast={contrast} must lie in (0, 0.5].")
    if horizon < 1:
        raise ValueError(f"horizon={horizon}: give 1 or more.")
    n_cells = dim // n_actions
    if n_states < n_cells:
        raise ValueError(f"n_states={n_states} is less than the {n_cells} cells that dim={dim} asks for.")
    destinations, probabilities = _current(n_states, n_cells, n_actions, success)
    memberships = tent_memberships(np.arange(n_states) / (n_states - 1), n_cells)
    phi, mu = aggregate(memberships, destinations, probabilities, np.ones(n_states, bool))
    reward = np.zeros((n_cells, n_actions))
    reward[0, :], reward[-1, -1] = left_reward, 1.0
    mixing = np.kron(
        np.eye(n_cells), _action_vectors(n_actions, contrast)
    )  # rows: one-hot (cell, action) → φ
    mu, theta = np.linalg.solve(mixing, mu), np.linalg.solve(mixing, reward.ravel())
    rho = np.full(n_states, 1.0 / n_states) if exploring_starts else np.eye(n_states)[0]
    theta *= min(1.0, np.sqrt(dim) / np.linalg.norm(theta))
    return in_single_precision(
        features=phi @ mixing,
        transition_measures=np.tile(mu, (horizon, 1, 1)),
        theta=np.tile(theta, (horizon, 1)),
        initial_distribution=rho,
    )


def _current(n_states: int, n_cells: int, n_actions: int, success: float):
    """Next states [A, S, 3] (left, stay, right) and their probabilities."""
    stride = max(1, round((n_states - 1) / (n_cells - 1)))
    here = np.arange(n_states)
    moves = np.stack([np.maximum(here - stride, 0), here, np.minimum(here + stride, n_states - 1)], axis=-1)
    destinations = np.broadcast_to(moves, (n_actions, n_states, 3))
    chances = np.array([[1.0, 0.0, 0.0]] * (n_actions - 1) + [[0.05, 0.95 - success, success]])
    return destinations, np.broadcast_to(chances[:, None, :], destinations.shape)


def _action_vectors(n_actions: int, contrast: float):
    """f_a [A, A]: unit vectors with a common part √(1−c²) and simplex corners of length c."""
    centred = np.eye(n_actions) - 1.0 / n_actions
    corners = np.linalg.svd(centred)[0][
        :, : n_actions - 1
    ]  # orthonormal basis of the contrasts, one row an action
    corners /= np.linalg.norm(corners, axis=1, keepdims=True)
    common = np.full((n_actions, 1), np.sqrt(1 - contrast**2))
    return np.concatenate([common, contrast * corners], axis=1)


FAMILIES = [
    Family(
        "chain",
        {
            "quick": lambda key: chain_mdp(n_states=20, n_actions=2, dim=6, horizon=4),
            "full": lambda key: chain_mdp(),
            "tiny": lambda key: chain_mdp(n_states=6, n_actions=2, dim=4, horizon=2),
        },
        usual=True,
    )
]
