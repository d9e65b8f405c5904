"""What the linear programs of the tests share."""

import numpy as np


def flow_constraints(mdp):
    """(A, b): A q = b are the Bellman-flow constraints on occupancies q [H·S·A]."""
    horizon, n_states, n_actions = mdp.horizon, mdp.n_states, mdp.n_actions
    size = n_states * n_actions
    phi = np.asarray(mdp.features).reshape(size, -1)
    matrix = np.zeros((horizon, n_states, horizon, size))
    for h in range(horizon):
        matrix[h, :, h] = np.kron(np.eye(n_states), np.ones(n_actions))
        if h:
            matrix[h, :, h - 1] = -(phi @ np.asarray(mdp.transition_measures)[h - 1]).T
    entering = np.concatenate([mdp.initial_distribution, np.zeros((horizon - 1) * n_states)])
    return matrix.reshape(horizon * n_states, horizon * size), entering
