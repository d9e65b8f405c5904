"""Soft state aggregation: an exactly linear MDP from a sparse tabular one.

Macro-cells k overlap: state s belongs to k with weight ψ_k(s), Σ_kψ_k(s) = 1. With φ(s,a) = Σ_kψ_k(s)e_{(k,a)}
and μ_{(k,a)}(s') = Σ_s b_k(s)T(s'|s,a), b_k(s) ∝ ψ_k(s), the process "forget where in your cell you are, then
move" is a linear MDP with d = K·A (Singh, Jaakkola & Jordan 1995, *Reinforcement learning with soft state
aggregation*; Jin et al. 2020 for the linear-MDP reading).
"""

import numpy as np


def tent_memberships(positions: np.ndarray, n_cells: int) -> np.ndarray:
    """ψ [S, K] by linear interpolation between K equally spaced centres on [0, 1]."""
    if n_cells == 1:
        return np.ones((len(positions), 1))
    spot = np.clip(positions, 0.0, 1.0) * (n_cells - 1)
    return np.maximum(0.0, 1.0 - np.abs(spot[:, None] - np.arange(n_cells)[None, :]))


def aggregate(
    memberships: np.ndarray, destinations: np.ndarray, probabilities: np.ndarray, open_states: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Features and transition measures of the aggregated process.

    **Arguments:** `memberships` ψ [S, K]; `destinations` int [A, S, m] and `probabilities` [A, S, m]: the m
    possible next states of each (a, s); `open_states` bool [S]: states that can be occupied (b_k leaves the
    others out).

    **Returns:** (φ [S, A, K·A], μ [K·A, S]).

    **Raises:** ValueError for a macro-cell without an open state.
    """
    n_states, n_cells = memberships.shape
    n_actions = destinations.shape[0]
    inside = memberships * open_states[:, None]
    if not (inside.sum(axis=0) > 0).all():
        raise ValueError(
            "A macro-cell holds no state that can be occupied: use more states a cell, or fewer walls."
        )
    inside = inside / inside.sum(axis=0, keepdims=True)
    phi = np.zeros((n_states, n_actions, n_cells, n_actions))
    mu = np.zeros((n_cells, n_actions, n_states))
    for a in range(n_actions):
        phi[:, a, :, a] = memberships
        for k in range(n_cells):
            np.add.at(mu[k, a], destinations[a], inside[:, k, None] * probabilities[a])
    return phi.reshape(n_states, n_actions, -1), mu.reshape(-1, n_states)
